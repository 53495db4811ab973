"""The arguments and steps that SmartSBD's trainings have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import selection

if TYPE_CHECKING:
    from models.sbd.train.job import Job

FEATURES = Path("data/processed/sbd.parquet")
SERIES = Path("data/processed/series.parquet")
OUT = Path("reports/sbd")


def table(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the table to learn from."""
    parser.add_argument(
        "--features",
        type=Path,
        default=FEATURES,
        help="table of `cczoo features sbd` (default: %(default)s)",
    )
    selection.add_arguments(parser)


def results(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the directory that the steps share."""
    parser.add_argument(
        "--out", type=Path, default=OUT, help="result tables (default: %(default)s)"
    )


def events(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the events that rule-based schemes run on."""
    parser.add_argument(
        "--events", type=Path, help="ingested directory or store, to run the rule-based schemes"
    )


def zoo(parser: argparse.ArgumentParser, default: str = "models/trained") -> None:
    """Add the argument for the folder of entries."""
    parser.add_argument("--zoo", type=Path, help=f"where models go (default: {default})")


def family(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the family of features to train on."""
    from features.sbd import TABLES

    parser.add_argument(
        "--family",
        default="smartsbd",
        choices=[name for families in TABLES.values() for name in families],
        metavar="NAME",
        help="family of features (default: %(default)s)",
    )


def search(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of an AutoML search."""
    from models.sbd.automl import BACKENDS

    parser.add_argument(
        "--backend",
        default="flaml",
        choices=tuple(BACKENDS),
        metavar="NAME",
        help="flaml (default), or auto-sklearn (make automl)",
    )
    parser.add_argument(
        "--seconds", type=float, default=300, help="a search's wall-clock budget (default: 300)"
    )
    parser.add_argument("--trials", type=int, help="at most so many configurations")


def settings(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for settings and for the form of the printed result."""
    parser.add_argument("--params", type=Path, help="YAML file with settings (models: sbd: ...)")
    parser.add_argument("--seed", type=int, help="overrides the settings' seed")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def registration(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the registration of models."""
    parser.add_argument(
        "--offline", action="store_true", help="keep what would be registered, to be sent later"
    )
    parser.add_argument("--no-register", action="store_true", help="register nothing")


def check_registry(args: argparse.Namespace) -> None:
    """Refuse to begin if the registry can't be reached: it would fail after hours of training."""
    if args.no_register:
        return
    from pipelines import tracking
    from pipelines.registry import register

    if not register.is_offline(args.offline):
        tracking.check_store()


def job_of(args: argparse.Namespace, events: Path | None = None, zoo: Path | None = None) -> Job:
    """Job of a training with the inputs, outputs and settings of the command line."""
    from data.command_line import made_by
    from models.sbd.train.job import Job
    from pipelines.output import progress
    from pipelines.sbd.settings import load_params

    return Job(
        features=args.features,
        out=args.out,
        params=load_params(args.params, args.seed),
        events=events,
        zoo=zoo,
        command=made_by(),
        progress=progress,
    )


def steps(job: Job, names: Iterable[str]) -> dict[str, Any]:
    """Run these steps; returns the summary of each, and counts of the rows left out."""
    from models import parallel
    from models.sbd.train.steps import step_protocol, step_search
    from pipelines.sbd.fit import step_fit

    known = {"search": step_search, "protocol": step_protocol, "fit": step_fit}
    try:
        summary = {name: known[name](job) for name in names}
    finally:
        parallel.stop()
    summary["dropped"] = job.dropped.described()
    return summary


def report(summary: dict[str, Any], as_json: bool) -> int:
    """Print the summaries of steps; returns 0."""
    from pipelines.output import print_json
    from pipelines.sbd.summary import print_summary

    if as_json:
        print_json(summary)
    else:
        print_summary(summary)
    return 0
