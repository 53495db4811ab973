"""The steps of ``cczoo train sbd neural``, which trains the classifier on raw series."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from models.sbd.evaluate import splits
from models.sbd.neural import comparison, outofsample
from models.sbd.results.neural import CHOICE, NEURAL
from pipelines.output import print_json, progress
from pipelines.sbd.neural_job import OTHERS, NeuralJob
from pipelines.sbd.train.shared import SERIES


def run(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Run these steps in order."""
    from models import parallel
    from pipelines import params as settings
    from pipelines.sbd import neural_fit

    found = settings.load(args.params).models.sbd
    job = NeuralJob(
        features=args.features,
        out=args.out,
        sbd=found,
        neural=found.neural,
        # Their predictions number the rows of the pipeline's own table.
        others=OTHERS if args.features == SERIES else None,
        zoo=args.zoo,
    )
    if args.seed is not None:
        job.neural = job.neural.model_copy(update={"seed": args.seed})
    steps = {"search": search, "protocol": measure, "fit": neural_fit.fit}
    summary: dict[str, Any] = {}
    try:
        for name in names:
            summary[name] = steps[name](job)
    finally:
        parallel.stop()
    summary["dropped"] = job.dropped.described()
    if args.json:
        print_json(summary)
    else:
        _print(summary)
    return 0


def search(job: NeuralJob) -> dict[str, Any]:
    """Try the variants on validation connections and families; writes ``choice.json``."""
    tasks = outofsample.selection_tasks(job.table, job.sbd, job.neural)
    answers = _run(job, tasks)
    choice = outofsample.chosen(job.table, answers)
    CHOICE.write(job.out, choice)
    return choice


def measure(job: NeuralJob) -> dict[str, Any]:
    """Measure on every split of the protocol, and compare with the other models.

    Writes ``neural.json`` and ``answers.parquet``.

    Raises
    ------
    UserError
        When there is no split, or the other models' predictions are of another table.
    """
    todo = splits.splits(job.table, job.sbd.protocol, job.sbd.seed)
    todo = [s for s in todo if not s.name.isdigit() or int(s.name) < job.neural.splits]
    if not todo:
        raise UserError(f"{job.features}: no row of the protocol's data sets: nothing to test on")
    answers = _run(job, outofsample.protocol_tasks(todo, job.neural, "chosen"))
    part = job.out / f".answers.{os.getpid()}"
    answers.write_parquet(part)
    part.replace(job.out / "answers.parquet")
    others = answers.clear()
    if job.others is not None and job.others.is_file():
        others = pl.read_parquet(job.others)
    try:
        rows = comparison.compare(job.table, answers, others, job.sbd)
    except ValueError as error:
        raise UserError(
            f"{job.others}: {error}: make both tables from the same events, then train again"
        ) from None
    choice = job.out / CHOICE.name
    result = {
        "settings": job.neural.model_dump(mode="json"),
        "data_hash": job.data_hash,
        "windows": len(job.table),
        "connections": int(np.unique(job.table.group).size),
        "choice": CHOICE.read(job.out) if choice.is_file() else None,
        "protocols": rows,
    }
    return NEURAL.write(job.out, result).model_dump()


def _run(job: NeuralJob, tasks: list[outofsample.Task]) -> pl.DataFrame:
    rows = job.rows(job.table)
    workers = job.sbd.workers

    return outofsample.run(job.table, rows, tasks, job.out / "parts", workers, progress)


def _print(summary: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from models.card import interval

    console = Console()
    if "search" in summary:
        for name, found in summary["search"]["variants"].items():
            mark = "*" if name == summary["search"]["chosen"] else " "
            console.print(f"{mark} {name:<8} {found['merit']:.4f}")
    if "protocol" in summary:
        view = Table("protocol", "neural", "against", "their accuracy", "neural less theirs")
        for row in summary["protocol"]["protocols"]:
            for name, other in row["against"].items():
                view.add_row(
                    row["protocol"],
                    interval(row["window"]),
                    name,
                    interval(other["window"]),
                    interval(other["window_difference"]),
                )
        console.print(view)
    if "fit" in summary:
        console.print(f"kept: {summary['fit']['entry']}")
