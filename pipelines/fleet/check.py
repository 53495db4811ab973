"""``cczoo store check``: read a store through, and compare it with its own account."""

from __future__ import annotations

import argparse

EXAMPLE = "example: cczoo store check STORE --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store check``."""
    parser.add_argument("store", help="folder or URL of the store")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Check; returns 1 if something is wrong."""
    from data.fleet.address import address
    from data.fleet.check import check
    from pipelines.output import print_json, progress

    found = check(address(args.store), lambda files: progress(files, "check"))
    if args.json:
        print_json(found)
    else:
        counts = found["counts"]
        for problem in found["problems"]:
            print(f"problem: {problem}")
        if found["more_problems"]:
            print(f"and {found['more_problems']} more problems")
        print(
            f"{found['files']} files, {found['logs']} logs, {counts.get('lines_read', 0)} lines = "
            f"{counts.get('event_lines', 0)} with events + {counts.get('skipped_lines', 0)} skipped"
            f" + {counts.get('quarantined_lines', 0)} quarantined, "
            f"{counts.get('connections', 0)} connections: "
            + ("NOT whole" if found["problems"] else "whole")
        )
    return 1 if found["problems"] else 0
