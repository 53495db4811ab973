"""``cczoo store forget``: remove connections for good, with all that was made of them."""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLE = "example: cczoo store forget STORE --where \"isp = 'x' and day < 2026-01-01\" --dry-run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo store forget``."""
    parser.add_argument("store", help="folder or URL of the store")
    parser.add_argument("--where", required=True, metavar="CONDITION", help="the connections")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, change nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Forget, and list the models that learned from what is gone."""
    from data.fleet.address import address, whole
    from data.fleet.forget import forget, meant
    from data.fleet.select import open_logs
    from data.fleet.where import Where
    from pipelines.fleet.learners import learners
    from pipelines.fleet.tables import KEYS
    from pipelines.output import print_json

    store, where = address(args.store), Where(args.where)
    identity = open_logs(store).id
    report: dict[str, Any] = {"store": whole(store), "dry_run": args.dry_run}
    # The registry is asked first: nothing is gone if it can't answer.
    learned = learners(identity, meant(store, where))
    if args.dry_run:
        found = meant(store, where)
        report |= {"connections": len(found)}
    else:
        gone = forget(store, where, KEYS)
        report |= {
            "connections": len(gone.rows),
            "features": gone.features,
            "files_deleted": gone.files,
            "version": gone.version,
        }
    report["models"] = learned
    if args.json:
        print_json(report)
        return 0
    print(f"{report['connections']} connections " + ("would go" if args.dry_run else "forgotten"))
    for name, number in report.get("features", {}).items():
        print(f"  with {number} rows of {name}")
    for model in learned:
        what = f"training {model['run']}"
        what = what if model["version"] is None else f"version {model['version']}"
        print(f"learned from them: {model['name']}, {what} ({model['where']})")
    if not learned:
        print("no model that is tracked learned from them")
    return 0
