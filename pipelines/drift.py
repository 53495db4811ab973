"""Compare new logs with what a model was trained on: keep the model, or train it again."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines import selection
from pipelines.sources import MODEL

EXAMPLE = """examples:
  cczoo drift --model smartsbd-plus --features NEW.parquet --by dataset
  cczoo drift --model smartsbd-plus --store STORE --where "day = 2026-11-18" --by isp
  cczoo drift --model registry:smartsbd-dt@champion --features NEW.parquet --plot drift.svg --json
Exits with 0 where the model can be kept, 1 where it should be trained again, 2 on wrong input or
too few connections to tell (docs/drift.md)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("--model", required=True, help=MODEL)
    parser.add_argument("--features", type=Path, help="table of the new logs (`cczoo features`)")
    selection.add_arguments(parser)
    parser.add_argument(
        "--reference-where",
        metavar="CONDITION",
        help="with --store: the rows of it to compare with (default: the model's own sample)",
    )
    parser.add_argument("--by", metavar="COLUMN,...", help="attributes to group by")
    parser.add_argument(
        "--reference", type=Path, help="the training table (default: the model's own sample of it)"
    )
    parser.add_argument("--plot", type=Path, help="write a figure (.svg or .png)")
    parser.add_argument("--params", type=Path, help="YAML file with settings")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Compare; returns 0 to keep the model, 1 to train it again."""
    from pipelines.sbd import drift

    return drift.run(args)
