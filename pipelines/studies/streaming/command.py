"""Watch a stream over many pairs of links with each scheduler; ``docs/streaming.md``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.studies.streaming import kept
from pipelines.studies.streaming.kept import SHOWN

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario

EXAMPLE = "example: python -m pipelines.studies.streaming.command --pairs 40 --json"
SCHEDULERS = ("minrtt", "roundrobin", "redundant", "qos")
CONTROLS = ("lia", "mpcdg")
Make = Callable[[int, str], "Scenario"]
"""(Pair, scheduler) -> its session."""


def watched(
    make: Make, pairs: int, links: str, controls: Sequence[str] = CONTROLS
) -> list[dict[str, Any]]:
    """Rows of `kept.Row`, for each control and scheduler over the same pairs."""
    from data.video.dash import watch
    from pipelines.output import progress

    values: dict[tuple[str, str], list[dict[str, float]]] = {}
    plan = [(cc, one) for cc in controls for one in SCHEDULERS]
    for cc, scheduler in progress(plan, f"watch streams over {links} pairs", len(plan)):
        runs = [watch(make(pair, scheduler), cc, pair) for pair in range(pairs)]
        values[cc, scheduler] = [{name: float(run[name][0]) for name in SHOWN} for run in runs]
    rows = []
    for (cc, scheduler), mine in values.items():
        base = values[cc, "minrtt"]
        more = [
            {name: one[name] - other[name] for name in SHOWN}
            for one, other in zip(mine, base, strict=True)
        ]
        made = {"links": links, "pairs": pairs, "cc": cc, "scheduler": scheduler}
        rows.append({**made, "mean": _estimates(mine), "more": _estimates(more)})
    return rows


def _estimates(values: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    from data.netsim.runner import intervals

    return {
        name: {"mean": one["mean"], "low": one["lo"], "high": one["hi"]}
        for name, one in intervals(values).items()
    }


def played(pairs: int, traces: Path | None) -> kept.Streaming:
    """All rows: over drawn pairs, and over measured ones where a folder of them is given."""
    from pipelines.studies.streaming.pairs import drawn, measured

    rows = watched(drawn, pairs, "generated")
    if traces is not None:
        found = measured(traces)
        rows += watched(lambda i, one: found[i].session(one), len(found), "measured")
    return kept.Streaming.model_validate({"rows": rows})


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything, print it, and keep it with its page if asked."""
    from data.errors import UserError
    from data.files import write_text
    from pipelines.studies.streaming import figures, page

    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=40, help="pairs drawn (default: %(default)s)")
    parser.add_argument(
        "--traces", type=Path, metavar="DIR",
        help="measured pairs besides: NAME_wifi.csv, NAME_cellular.csv of second,bytes",
    )  # fmt: skip
    parser.add_argument(
        "--keep", action="store_true", help=f"write {kept.FOLDER}, its figures and page"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    args = parser.parse_args(argv)
    if args.pairs < 2:
        parser.error("--pairs: two at least, for an interval")
    try:
        found = played(args.pairs, args.traces)
    except UserError as error:
        parser.error(str(error))
    if args.keep:
        kept.STREAMING.write(kept.FOLDER, found)
        pictures: dict[str, tuple[str, str]] = {}
        for links in dict.fromkeys(row.links for row in found.rows):
            text, caption = figures.drawn(found.rows, links)
            write_text(kept.FOLDER / f"{links}.svg", text)
            pictures[links] = (f"{kept.FOLDER.name}/{links}.svg", caption)
        write_text(kept.FOLDER.with_suffix(".md"), page.text(found, args.pairs, pictures))
    print(found.model_dump_json(indent=1) if args.json else page.tables(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
