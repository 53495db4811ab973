"""``cczoo train sbd protocol``: predict everything out of sample and write all result tables."""

from __future__ import annotations

import argparse

from pipelines.sbd.train import shared

EXAMPLE = "example: cczoo train sbd protocol --events data/interim/events --out reports/sbd"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd protocol``."""
    shared.table(parser)
    shared.events(parser)
    shared.results(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Predict with the results that the search has written."""
    job = shared.job_of(args, events=args.events)
    return shared.report(shared.steps(job, ["protocol"]), args.json)
