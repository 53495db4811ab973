"""Train, compare and keep shared-bottleneck classifiers."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = """examples:
  cczoo train sbd --features data/processed/sbd.parquet --events data/interim/events
  cczoo train sbd --groups dataset,cc --features data/processed/sbd.parquet --out reports/groups
  cczoo train sbd --model dt --budget ns=40,bytes=4000,insns=2000 --out build/small
  cczoo train sbd --model auto --seconds 300 --out build/auto    # docs/automl.md
  cczoo train sbd --model neural --step fit --out build/neural    # docs/neural.md
steps: search (mutual information, grid), protocol (all out-of-sample tables), fit (the zoo)"""

STEPS = ("search", "protocol", "fit")
OUT = Path("reports/sbd")
FEATURES = Path("data/processed/sbd.parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train``."""
    parser.add_argument("task", choices=["sbd"], help="what to train")
    parser.add_argument(
        "--features",
        type=Path,
        default=FEATURES,
        help="table of `cczoo features sbd` (default: %(default)s), or series for --model neural",
    )
    parser.add_argument(
        "--events", type=Path, help="ingested directory: needed to run the rule-based schemes"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"result tables (default: {OUT}; with --budget or --groups it must be given)",
    )
    parser.add_argument("--zoo", type=Path, help="where models go (default: models/trained)")
    parser.add_argument("--step", choices=STEPS, help="only this step (default: all in order)")
    parser.add_argument(
        "--budget",
        metavar="KEY=LIMIT,...",
        help="instead of the steps: accuracy against measured cost (ns, bytes, insns, stack), "
        "and the best model that fits into OUT/model",
    )
    parser.add_argument(
        "--groups",
        metavar="COLUMN,...",
        help="instead of the steps: a model for each group of connections with the same "
        "attributes, kept where it beats the pooled one; auto: by path conditions (needs --events)",
    )
    parser.add_argument(
        "--model",
        help="auto: an AutoML search; with --budget: dt, rf, gb or lr; with --groups any "
        "classifier (default: dt)",
    )
    parser.add_argument(
        "--family",
        default="smartsbd",
        help="with --budget, --groups or --model auto: features (default: %(default)s)",
    )
    parser.add_argument(
        "--backend", default="flaml", help="with --model auto: flaml or auto-sklearn (make automl)"
    )
    parser.add_argument(
        "--seconds", type=float, default=300, help="with --model auto: a search's wall-clock budget"
    )
    parser.add_argument(
        "--trials", type=int, help="with --model auto: at most so many configurations"
    )
    parser.add_argument(
        "--splits", type=int, help="with --model auto --step protocol: only the first so many"
    )
    parser.add_argument("--params", type=Path, help="YAML file with settings (models: sbd: ...)")
    parser.add_argument("--seed", type=int, help="overrides the settings' seed")
    parser.add_argument(
        "--offline", action="store_true", help="keep what would be registered, to be sent later"
    )
    parser.add_argument(
        "--no-register", action="store_true", help="register nothing (a single step never does)"
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the steps asked for, or the search within a budget."""
    from models import parallel, store
    from pipelines.output import print_json
    from pipelines.sbd import register as registration
    from pipelines.sbd import steps
    from pipelines.sbd.job import Job, load_params

    if args.groups is not None:
        return _grouped(args)
    if args.model == "neural":
        from pipelines.sbd import neural

        return neural.run(args, FEATURES)
    if args.model == "auto":
        from pipelines.sbd import automl

        return automl.run(args)
    if args.budget is not None or args.model is not None:
        return _within_budget(args)
    job = Job(
        features=args.features,
        out=args.out or OUT,
        params=load_params(args.params, args.seed),
        events=args.events,
        zoo=args.zoo or store.TRAINED,
    )
    registers = args.step is None and not args.no_register
    if registers:
        _check_registry(args)
    summary = {}
    try:
        for step in [args.step] if args.step else STEPS:
            summary[step] = steps.STEPS[step](job)
    finally:
        parallel.stop()
    summary["dropped"] = job.dropped.described()
    if registers:
        names = list(summary["fit"])
        summary["registered"] = registration.from_training(job, names, args.params, args.offline)
    if args.json:
        print_json(summary)
    else:
        steps.print_summary(summary)
    return 0


def _grouped(args: argparse.Namespace) -> int:
    """1 where a group failed."""
    from data.errors import UserError
    from features.sbd import features_of
    from pipelines.sbd import groups
    from pipelines.sbd.job import Job, load_params

    for given, flag in ((args.step, "--step"), (args.budget, "--budget"), (args.zoo, "--zoo")):
        if given:
            raise UserError(f"{flag} doesn't go with --groups: leave it out")
    if args.out is None:
        raise UserError("--out is missing: --groups writes results, models and a figure there")
    features_of(args.family)
    job = Job(
        features=args.features,
        out=args.out,
        params=load_params(args.params, args.seed),
        events=args.events,
    )
    if not args.no_register:
        _check_registry(args)
    return groups.run(args, job)


def _within_budget(args: argparse.Namespace) -> int:
    """1 where nothing fits."""
    from data.errors import UserError, unknown_name
    from export.budget import parse_budget
    from features.sbd import features_of
    from models import parallel
    from models.sbd.train.spaces import SPACES
    from pipelines.sbd import register as registration
    from pipelines.sbd.budget import run_search
    from pipelines.sbd.job import Job, load_params

    for given, flag in ((args.budget, "--budget"), (args.model, "--model"), (args.out, "--out")):
        if not given:
            raise UserError(f"{flag} is missing: --budget, --model and --out go together")
    for given, flag in ((args.step, "--step"), (args.events, "--events"), (args.zoo, "--zoo")):
        if given:
            raise UserError(f"{flag} doesn't go with --budget: leave it out")
    if args.model not in SPACES:
        raise unknown_name("model", args.model, SPACES)
    budget = parse_budget(args.budget)
    features_of(args.family)
    params = load_params(args.params, args.seed)
    job = Job(features=args.features, out=args.out, params=params)
    if not args.no_register:
        _check_registry(args)
    try:
        status = run_search(job, args.model, args.family, budget, args.json)
    finally:
        parallel.stop()
    if status == 0 and not args.no_register:
        registration.from_budget(job, args.budget, args.params, args.offline)
    return status


def _check_registry(args: argparse.Namespace) -> None:
    """Hours of training shouldn't end at a server that was never there."""
    from pipelines import tracking
    from pipelines.registry import register

    if not register.is_offline(args.offline):
        tracking.check_store()
