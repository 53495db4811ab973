"""Simulates driven scenarios with packets that are late by more or less, as on a busy host.

The lab's emulator says how late it was itself; what sender and receiver add, nobody measures. The
table shows which controls that matters to.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pipelines.output import print_json, progress
from pipelines.standalone import answer, command_parser

EXAMPLE = """\
examples:
  python -m pipelines.drive.jitter drive-loss --sites loss-0.01,loss-1 --cc bbr,cubic
  python -m pipelines.drive.jitter drive-one --sites steady --cc bbr --late-ms 0,0.3 --json"""
LATE_MS = "0,0.1,0.3,0.6,1"
MEDIAN_US = 15.0
"""Median of the lateness in quiet runs."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 2 if the user's input is wrong."""
    parser = command_parser("pipelines.drive.jitter", __doc__, EXAMPLE)
    parser.add_argument("scenario", help="as `cczoo lab drive --scenario` takes it")
    parser.add_argument("--sites", help="its groups, with commas between (default: all)")
    parser.add_argument("--cc", default="bbr,cubic", help="the kernel's controls (%(default)s)")
    parser.add_argument("--late-ms", default=LATE_MS, metavar="MS,MS",
                        help="99th percentiles of the lateness (default: %(default)s)")  # fmt: skip
    parser.add_argument("--repeats", type=int, default=5, help="of each (default: %(default)s)")
    parser.add_argument("--duration", type=float, help="seconds (default: the scenario's)")
    parser.add_argument("--json", action="store_true", help="print the means as JSON")
    return answer(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Simulate and print."""
    rows = figures(args, late_ms(args.late_ms))
    if args.json:
        print_json(rows)
    else:
        print(table(rows), end="")
    return 0


def late_ms(text: str) -> list[float]:
    """Numbers with commas between.

    Raises
    ------
    UserError
        When one isn't a number from 0 to 1000.
    """
    from data.errors import UserError

    try:
        found = [float(one) for one in text.split(",")]
    except ValueError:
        found = [-1.0]
    if not all(0 <= one <= 1000 for one in found):
        raise UserError(f"--late-ms {text}: milliseconds from 0 to 1000, with commas between")
    return found


def figures(args: argparse.Namespace, late: list[float]) -> list[dict[str, Any]]:
    """Means over the repeats of each site, control and lateness.

    Returns
    -------
    list of dict
        ``site``, ``control``, ``late_p99_ms``, ``goodput_mbps`` and ``rtt_ms``.
    """
    from statistics import fmean

    from data.errors import UserError
    from pipelines.drive.command import tasks
    from pipelines.drive.played import Playing
    from pipelines.drive.simulated import simulated
    from pipelines.drive.tasks import KERNEL_CONTROLS

    if args.repeats < 1:
        raise UserError("--repeats: at least 1")
    others = [one for one in args.cc.split(",") if one not in KERNEL_CONTROLS]
    if others:
        raise UserError(f"--cc {others[0]}: the kernel's own alone: {', '.join(KERNEL_CONTROLS)}")
    planned = [(task, one) for task in tasks(args) for one in late]
    found: dict[tuple[str, str, float], list[dict[str, float]]] = {}
    for task, one in progress(planned, "simulating", len(planned)):
        record = {
            "site": task.site,
            "control": task.control,
            "seed": task.seed,
            "drawn": task.drawn.model_dump(exclude_defaults=True, mode="json"),
            "lateness_us": {"p50": MEDIAN_US, "p99": 1000 * one} if one else None,
            "goodput_mbps": None,
            "rtt_ms": None,
        }
        row = simulated(record, Playing(None))
        found.setdefault((task.site, task.control, one), []).append(row or {})
    return [
        {"site": site, "control": control, "late_p99_ms": one}
        | {name: round(fmean(row[name] for row in rows), 2) for name in ("goodput_mbps", "rtt_ms")}
        for (site, control, one), rows in found.items()
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """RTTs in ms and, behind the slash, goodputs in Mbps, as a Markdown table."""
    late = list(dict.fromkeys(row["late_p99_ms"] for row in rows))
    lines = [
        "| setting | control | " + " | ".join(f"{one:g} ms" for one in late) + " |",
        "| --- | --- |" + " --- |" * len(late),
    ]
    for site, control in dict.fromkeys((row["site"], row["control"]) for row in rows):
        mine = [row for row in rows if (row["site"], row["control"]) == (site, control)]
        cells = [f"{row['rtt_ms']:.1f} / {row['goodput_mbps']:.1f}" for row in mine]
        lines.append(f"| {site} | {control} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
