"""``cczoo train sbd auto-protocol``: run an AutoML search on each split of the paper's Table 5."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.sbd.train import shared

EXAMPLE = """example:
  cczoo train sbd auto-protocol --trials 60 --seconds 1200 --out build/table5    # docs/automl.md"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd auto-protocol``."""
    shared.search(parser)
    shared.family(parser)
    shared.table(parser)
    parser.add_argument("--splits", type=int, help="only the first so many (default: all)")
    parser.add_argument(
        "--out", type=Path, required=True, help="automl.json, and each split as it is done"
    )
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Search, going on from the point at which an earlier run of the same search ended."""
    from pipelines.sbd import automl_table5
    from pipelines.sbd.automl_plan import plan_of

    plan = plan_of(args)
    return automl_table5.run(shared.job_of(args), plan, args.splits, args.json)
