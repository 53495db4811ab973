"""``cczoo train sbd fit``: fit the models that are kept and write them as entries."""

from __future__ import annotations

import argparse

from pipelines.sbd.train import shared

EXAMPLE = "example: cczoo train sbd fit --out reports/sbd --zoo models/trained"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd fit``."""
    shared.table(parser)
    shared.results(parser)
    shared.zoo(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Fit with the results that the search and the protocol have written."""
    from models import store

    job = shared.job_of(args, zoo=args.zoo or store.TRAINED)
    return shared.report(shared.steps(job, ["fit"]), args.json)
