"""``cczoo train sbd search``: rank the features and search the hyperparameters."""

from __future__ import annotations

import argparse

from pipelines.sbd.train import shared

EXAMPLE = "example: cczoo train sbd search --params params.yaml --out reports/sbd"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd search``."""
    shared.table(parser)
    shared.results(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Write ``mi.json``, ``search.csv`` and ``best.json``."""
    return shared.report(shared.steps(shared.job_of(args), ["search"]), args.json)
