"""``cczoo store version``: name what a condition selects, so that DVC knows when it changes."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = "example: cczoo store version STORE --where \"isp = 'x'\" --out data/interim/store.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store version``."""
    parser.add_argument("store", help="folder or URL of the store")
    parser.add_argument("--where", metavar="CONDITION", help="only what this condition selects")
    parser.add_argument("--out", type=Path, help="JSON file to write, which changes with the data")


def run(args: argparse.Namespace) -> int:
    """Print the version; the file has what depends on the selected data alone."""
    import json

    from data.files import write_text
    from data.fleet.address import address, whole
    from data.fleet.select import fingerprint, open_logs
    from data.fleet.where import Where
    from pipelines.output import print_json

    store = address(args.store)
    table = open_logs(store)
    found, connections = fingerprint(table, Where(args.where))
    named = {
        "id": table.id,
        "where": args.where or "",
        "fingerprint": found,
        "connections": connections,
    }
    if args.out is not None:
        write_text(args.out, json.dumps(named, indent=1) + "\n")
    print_json({"store": whole(store), "version": table.version, **named})
    return 0
