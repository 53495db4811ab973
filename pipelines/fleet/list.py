"""``cczoo store list``: what a store holds."""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

EXAMPLE = """examples:
  cczoo store list STORE
  cczoo store list STORE --logs --where "day = 2026-11-03" --json
  cczoo store list STORE --quarantine"""
WIDE = 1000
"""Characters of a line that no terminal shows."""
SHOWN = 1000
"""Lines of the quarantine that are printed; --json has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store list``."""
    parser.add_argument("store", help="folder or URL of the store")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--logs", action="store_true", help="one row per log")
    what.add_argument("--quarantine", action="store_true", help="lines that weren't understood")
    parser.add_argument(
        "--where", metavar="CONDITION", help="only of this day or these labels, as in isp = 'x'"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print days, logs or quarantined lines."""
    from data.fleet import listing
    from data.fleet.address import address
    from data.fleet.where import Where
    from pipelines.output import print_json

    store, where = address(args.store), Where(args.where)
    if args.quarantine:
        found = listing.quarantine(store, where)
    else:
        found = listing.logs(store, where)
        found = found if args.logs else _days(found)
    if args.json:
        print_json(found)
        return 0
    _show(found[:SHOWN] if args.quarantine else found)
    return 0


def _days(logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums over the logs of each partition."""
    from data.fleet.layout import SOURCE

    places: dict[Any, dict[str, Any]] = {}
    sums: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for log in logs:
        place = {name: v for name, v in log.items() if name not in {*SOURCE.names, "counts"}}
        key = tuple(place.values())
        places[key] = place
        sums[key]["logs"] += 1
        for name, value in log["counts"].items():
            sums[key][name] += value
    return [places[key] | dict(sums[key]) for key in sorted(places, key=str)]


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    plain = [
        {name: v for name, v in row.items() if not isinstance(v, dict)}
        | {n: v for n, v in row.get("counts", {}).items() if n in ("connections", "events")}
        for row in rows
    ]
    hidden = {"intake", "content", "stamp", "context", "unit", "bytes", "backwards_lines",
              "damaged_sources", "subflows"}  # fmt: skip
    names = [name for name in (plain[0] if plain else {}) if name not in hidden]
    view = Table(box=None, pad_edge=False)
    for name in names:
        view.add_column(name, overflow="fold")  # a name that is cut can't be given to `remove`
    for row in plain:
        view.add_row(*("–" if row[name] is None else str(row[name]) for name in names))
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    console.print(view if plain else "nothing")
