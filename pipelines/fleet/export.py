"""``cczoo store export``: a part of a store as a directory, for whatever takes ``--events``."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = "example: cczoo store export STORE --where \"isp = 'x'\" --out data/interim/x"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store export``."""
    parser.add_argument("store", help="folder or URL of the store")
    parser.add_argument("--where", metavar="CONDITION", help="only what this condition selects")
    parser.add_argument("--out", type=Path, required=True, help="ingested directory to make")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Write the directory."""
    from data.fleet.address import address
    from data.fleet.directory import write_directory
    from data.fleet.where import Where
    from pipelines.output import print_json

    report = write_directory(address(args.store), Where(args.where), args.out)
    if args.json:
        print_json(report)
    else:
        print(
            f"{report['connections']} connections with {report['events']} events, of "
            f"{report['sources']} logs → {args.out}"
        )
    return 0
