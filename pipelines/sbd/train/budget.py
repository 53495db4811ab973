"""``cczoo train sbd budget``: find the most accurate model whose measured costs fit a budget."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.sbd.train import shared

EXAMPLE = """example:
  cczoo train sbd budget ns=40,bytes=4000,insns=2000 --model dt --out build/small"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd budget``."""
    from models.sbd.train.spaces import SPACES

    parser.add_argument(
        "budget",
        metavar="KEY=LIMIT,...",
        help="what a decision may cost: ns, bytes, insns, stack; TARGET.KEY for one target alone",
    )
    parser.add_argument(
        "--model", required=True, choices=tuple(SPACES), metavar="NAME", help=", ".join(SPACES)
    )
    shared.family(parser)
    shared.table(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="pareto.json, pareto.svg and, where one fits, the model",
    )
    shared.registration(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Search, keep and register; returns 1 if no model fits."""
    from export.budget import parse_budget
    from models import parallel
    from pipelines.sbd import register
    from pipelines.sbd.budget import run_search

    budget = parse_budget(args.budget)
    job = shared.job_of(args)
    shared.check_registry(args)
    try:
        status = run_search(job, args.model, args.family, budget, args.json)
    finally:
        parallel.stop()
    if status == 0 and not args.no_register:
        register.from_budget(job, args.budget, args.params, args.offline)
    return status
