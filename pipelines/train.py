"""Train, compare and keep shared-bottleneck classifiers."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = """example:
  cczoo train sbd --features data/processed/sbd.parquet --events data/interim/events
steps: search (mutual information, grid), protocol (all out-of-sample tables), fit (the zoo)"""

STEPS = ("search", "protocol", "fit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train``."""
    parser.add_argument("task", choices=["sbd"], help="what to train")
    parser.add_argument(
        "--features",
        type=Path,
        default=Path("data/processed/sbd.parquet"),
        help="table of `cczoo features sbd` (default: %(default)s)",
    )
    parser.add_argument(
        "--events", type=Path, help="ingested directory: needed to run the rule-based schemes"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("reports/sbd"), help="result tables (default: %(default)s)"
    )
    parser.add_argument("--zoo", type=Path, help="where models are kept (default: models/zoo)")
    parser.add_argument("--step", choices=STEPS, help="only this step (default: all in order)")
    parser.add_argument("--params", type=Path, help="YAML file with settings (models: sbd: ...)")
    parser.add_argument("--seed", type=int, help="overrides the settings' seed")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the steps asked for."""
    from models.sbd import parallel
    from pipelines import train_steps
    from pipelines.output import print_json

    job = train_steps.Job(
        features=args.features,
        out=args.out,
        params=train_steps.load_params(args.params, args.seed),
        events=args.events,
        zoo=args.zoo,
    )
    summary = {}
    try:
        for step in [args.step] if args.step else STEPS:
            summary[step] = train_steps.STEPS[step](job)
    finally:
        parallel.stop()
    if args.json:
        print_json(summary)
    else:
        train_steps.print_summary(summary)
    return 0
