"""``cczoo train sbd all``: run the three steps in order, then register the models."""

from __future__ import annotations

import argparse

from pipelines.sbd.train import shared

EXAMPLE = (
    "example: cczoo train sbd all --events data/interim/events --out reports/mine --zoo my-zoo"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd all``."""
    shared.table(parser)
    shared.events(parser)
    shared.results(parser)
    shared.zoo(parser)
    shared.registration(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Search, predict out of sample, fit, register."""
    from models import store
    from pipelines.sbd import register

    job = shared.job_of(args, events=args.events, zoo=args.zoo or store.TRAINED)
    shared.check_registry(args)
    summary = shared.steps(job, ("search", "protocol", "fit"))
    if not args.no_register:
        names = list(summary["fit"])
        summary["registered"] = register.from_training(job, names, args.params, args.offline)
    return shared.report(summary, args.json)
