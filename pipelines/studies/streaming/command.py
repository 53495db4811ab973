"""Watch a stream over many pairs of links with each scheduler; ``docs/streaming.md``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXAMPLE = (
    "example: python -m pipelines.studies.streaming.command --pairs 40 --out docs/streaming.md"
)
SCHEDULERS = ("minrtt", "roundrobin", "redundant", "qos")
CONTROLS = ("lia", "mpcdg")
SHOWN = {
    "stalls": "stalls",
    "stalled_s": "stalled, s",
    "startup_s": "start-up, s",
    "psnr_db": "PSNR, dB",
    "rate_mbps": "rate, Mbps",
    "goodput_mbps": "goodput, Mbps",
    "reorder_kb": "out of order, kB",
}
NOTE = """\
MP-CDG's scheduler stalls no less than minRTT: the interval of the difference has zero in it with
both controls. A stream leaves windows open most of the time, and then equation 1 prefers the path
of the shorter delay, as minRTT does. Where the two differ, equation 1 gives the slower path a whole
window of data in a row once the faster one is filled; the end of a segment then waits for it, so
more data wait out of order. Sending everything twice (`redundant`) has the fewest stalls with LIA,
for a picture that is about 1 dB worse."""
"""What the page says of its figures, which are printed above it each time."""
Results = dict[tuple[str, str], dict[str, NDArray[np.float64]]]


def played(pairs: int, controls: Sequence[str] = CONTROLS) -> Results:
    """(Control, scheduler) -> metric -> float64 array [pairs]."""
    from data.video.dash import watch
    from pipelines.output import progress
    from pipelines.studies.streaming.pairs import drawn

    found: Results = {}
    plan = [(cc, one) for cc in controls for one in SCHEDULERS]
    for cc, scheduler in progress(plan, "watch streams", len(plan)):
        runs = [watch(drawn(pair, scheduler), cc, pair) for pair in range(pairs)]
        found[cc, scheduler] = {
            name: np.array([float(run[name][0]) for run in runs]) for name in SHOWN
        }
    return found


def intervals(results: Results) -> list[dict[str, Any]]:
    """Rows: mean of each metric, and its difference to minRTT's, paired, with 95 % intervals."""
    from data.netsim.runner import intervals as over

    rows = []
    for (cc, scheduler), metrics in results.items():
        base = results[cc, "minrtt"]
        values = [
            {name: float(metrics[name][i]) for name in SHOWN} for i in range(len(base["stalls"]))
        ]
        less = [
            {name: float(metrics[name][i] - base[name][i]) for name in SHOWN}
            for i in range(len(base["stalls"]))
        ]
        rows.append({"cc": cc, "scheduler": scheduler, "mean": over(values), "more": over(less)})
    return rows


def page(rows: Sequence[Mapping[str, Any]], pairs: int) -> str:
    """The page, in Markdown."""
    lines = [
        "# Streams over two paths, by scheduler",
        "",
        f"Made by `python -m pipelines.studies.streaming.command --pairs {pairs} --out "
        "docs/streaming.md`.",
        "A DASH-like live session of 60 s (`data/video/dash.py`: segments of 1 s, 3 s of buffer)",
        f"over each of {pairs} pairs of a wireless LAN and a cellular link",
        "(`pipelines/studies/streaming/pairs.py`), with every scheduler of the simulator. `qos` is",
        "MP-CDG's (mp-cdg.txt section 4.1, `data/netsim/qos_scheduler.py`). Means over pairs with",
        "95 % intervals (Student's t); differences are paired.",
        "",
        NOTE,
    ]
    for cc in dict.fromkeys(row["cc"] for row in rows):
        own = [row for row in rows if row["cc"] == cc]
        for key, title in (("mean", f"With `{cc}`"), ("more", f"With `{cc}`: more than minRTT")):
            lines += ["", f"## {title}", "", f"| scheduler | {' | '.join(SHOWN.values())} |"]
            lines.append(f"| --- |{' ---: |' * len(SHOWN)}")
            for row in own:
                if key == "more" and row["scheduler"] == "minrtt":
                    continue
                cells = " | ".join(_cell(row[key][name]) for name in SHOWN)
                lines.append(f"| `{row['scheduler']}` | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(value: Mapping[str, float]) -> str:
    return f"{value['mean']:.3g} [{value['lo']:.3g}, {value['hi']:.3g}]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything, write the page or print JSON."""
    from data.files import write_text

    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE)
    parser.add_argument("--pairs", type=int, default=40, help="pairs of links (default 40)")
    parser.add_argument("--out", type=Path, help="Markdown page to write")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    args = parser.parse_args(argv)
    if args.pairs < 2:
        parser.error("--pairs: two at least, for an interval")
    rows = intervals(played(args.pairs))
    if args.out is not None:
        write_text(args.out, page(rows, args.pairs))
    if args.json or args.out is None:
        print(json.dumps({"pairs": args.pairs, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
