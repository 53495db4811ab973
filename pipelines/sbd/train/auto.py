"""``cczoo train sbd auto``: run an AutoML search and keep its best member."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.sbd.train import shared

EXAMPLE = "example: cczoo train sbd auto --seconds 300 --out build/auto    # docs/automl.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd auto``."""
    shared.search(parser)
    shared.family(parser)
    shared.table(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help="automl.json, the members and the model"
    )
    shared.registration(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Search, keep, register."""
    from pipelines.sbd import automl

    return automl.run(args)
