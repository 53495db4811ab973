"""``cczoo train sbd groups``: train a model for each group of connections that it serves better."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.sbd.train import shared

EXAMPLE = """examples:
  cczoo train sbd groups --by dataset,cc --out reports/groups
  cczoo train sbd groups --conditions data/interim/events --out reports/auto"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``cczoo train sbd groups``."""
    from models.sbd.train.classifiers import CLASSIFIERS, SHORT

    grouping = parser.add_mutually_exclusive_group(required=True)
    grouping.add_argument(
        "--by", metavar="COLUMN,...", help="a group is the connections with the same attributes"
    )
    grouping.add_argument(
        "--conditions",
        type=Path,
        metavar="EVENTS",
        help="a group is the connections under like path conditions, by the RTT series of this "
        "ingested directory",
    )
    parser.add_argument(
        "--model",
        default="dt",
        choices=(*SHORT, *CLASSIFIERS),
        metavar="NAME",
        help=f"{', '.join(SHORT)} or any other classifier (default: %(default)s)",
    )
    shared.family(parser)
    shared.table(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help="results, the models (zoo/) and a figure"
    )
    shared.registration(parser)
    shared.settings(parser)


def run(args: argparse.Namespace) -> int:
    """Train the groups; returns 1 if a group failed."""
    from pipelines.sbd import groups

    job = shared.job_of(args, events=args.conditions)
    shared.check_registry(args)
    return groups.run(args, job)
