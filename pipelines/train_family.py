"""``cczoo train NAME`` for a family without programs of its own: train, keep and register."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

EXAMPLE = "example: cczoo train NAME --data FILE --out reports/NAME --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that every family's training has."""
    parser.add_argument(
        "--data", type=Path, help="what to learn from (default: where make repro leaves it)"
    )
    parser.add_argument("--out", type=Path, help="result tables (default: reports/NAME)")
    parser.add_argument("--zoo", type=Path, help="where models go (default: models/trained)")
    parser.add_argument("--params", type=Path, help="YAML file with settings (models: NAME: ...)")
    parser.add_argument("--seed", type=int, help="overrides the settings' seed")
    parser.add_argument(
        "--offline", action="store_true", help="keep what would be registered, to be sent later"
    )
    parser.add_argument("--no-register", action="store_true", help="register nothing")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Train the family that ``args.task`` names."""
    from data.command_line import made_by
    from data.errors import UserError
    from export.trained_entry import write_trained
    from models import parallel, store
    from models.families import FAMILIES, family
    from models.trained import Job
    from pipelines import tracking
    from pipelines.output import print_json, progress
    from pipelines.params import load
    from pipelines.registry import register

    chosen = family(args.task)
    settings = load(args.params).models.of(args.task)
    if args.seed is not None:
        settings = settings.model_copy(update={"seed": args.seed})
    data = args.data or chosen.data(FAMILIES[args.task].observes[0])
    if not data.exists():
        raise UserError(f"{data}: no such data: collect it first, or give --data")
    if not args.no_register and not register.is_offline(args.offline):
        tracking.check_store()
    job = Job(data, args.out or Path("reports") / args.task, settings, made_by(), progress)
    entries: dict[str, Path] = {}
    metrics: dict[str, Any] = {}
    try:
        for trained in chosen.train(job):
            directory = write_trained(trained, chosen.card(trained), args.zoo or store.TRAINED)
            entries[trained.name] = directory
            metrics[trained.name] = trained.metrics.get("headline", {})
            print(f"kept {directory}", file=sys.stderr)
    finally:
        parallel.stop()
    result: dict[str, Any] = {"entries": {k: str(v) for k, v in entries.items()}}
    result["headline"] = metrics
    if entries and not args.no_register:
        flat = {key: one for key, one in tracking.flatten(metrics).items() if one is not None}
        found = register.training(f"cczoo train {args.task}", entries, args.params, flat, data)
        result["registered"] = register.send(found, args.offline)["versions"]
    if args.json:
        print_json(result)
    return 0
