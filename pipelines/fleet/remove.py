"""``cczoo store remove``: take logs out of a store, which can be taken again."""

from __future__ import annotations

import argparse

EXAMPLE = "example: cczoo store remove STORE '/var/log/cc/2026-11-03/*'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store remove``."""
    parser.add_argument("store", help="folder or URL of the store")
    parser.add_argument("names", nargs="+", metavar="NAME", help="name of a log; patterns take *")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Remove."""
    from data.fleet.address import address
    from data.fleet.keep import remove
    from pipelines.fleet.tables import KEYS
    from pipelines.output import print_json

    found = remove(address(args.store), args.names, tuple(KEYS))
    if args.json:
        print_json(found)
    else:
        print(f"{len(found['logs'])} logs removed from {args.store}, version {found['version']}")
    return 0
