"""``cczoo store compact``: make few files of many, and delete those that are no longer in use."""

from __future__ import annotations

import argparse

EXAMPLE = "example: cczoo store compact STORE --keep-days 7"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store compact``."""
    parser.add_argument("store", help="folder or URL of the store")
    parser.add_argument(
        "--keep-days",
        type=int,
        default=7,
        help="files that are no longer in the store stay for so long (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Compact."""
    from data.errors import UserError
    from data.fleet.address import address
    from data.fleet.keep import compact
    from pipelines.fleet.tables import KEYS
    from pipelines.output import print_json

    if args.keep_days < 0:
        raise UserError(f"--keep-days {args.keep_days}: give a number of days from 0 on")
    found = compact(address(args.store), args.keep_days, tuple(KEYS))
    if args.json:
        print_json(found)
    else:
        print(
            f"{found['files_before']} files are {found['files']} now, {found['files_deleted']} "
            f"deleted; version {found['version']}"
        )
    return 0
