"""Build and run an exported bundle, compare it with its model and write certificate.json."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pipelines.output import print_json

EXAMPLE = "example: cczoo verify build/smartsbd-dt --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("bundle", type=Path, help="directory made by cczoo export")
    parser.add_argument("--random", type=int, default=2000, help="random vectors (default 2000)")
    parser.add_argument("--seed", type=int, default=20, help="seed of the random vectors")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Verify; 1 when anything differs or can't be run."""
    from data.errors import UserError
    from export.params import VerifyParams
    from export.verify import verify

    if args.random < 0 or args.seed < 0:
        raise UserError("--random and --seed can't be negative")
    report = verify(args.bundle, VerifyParams(random=args.random, seed=args.seed))
    if args.json:
        print_json(report)
    else:
        _print(report)
    return 0 if report["ok"] else 1


def _print(report: dict[str, Any]) -> None:
    for problem in report["problems"]:
        print(f"FAILED  {problem}", file=sys.stderr)
    for target in report["targets"]:
        if "error" in target:
            print(f"FAILED  {target['target']}: {target['error']}", file=sys.stderr)
            continue
        found = (
            f"{target['target']}: {target['vectors']} vectors, {target['mismatches']} mismatches"
        )
        if target.get("ns_per_decision") is not None:
            found += f", {target['ns_per_decision']:.1f} ns per decision"
        if target.get("object_bytes") is not None:
            found += f", {target['object_bytes']} bytes"
        print(f"{'FAILED' if target['mismatches'] else 'ok':<7} {found}")
