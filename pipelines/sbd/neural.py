"""``cczoo train sbd --model neural``: the classifier on raw series, step by step."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError
from features.sbd import features_of
from models.sbd.content import content_hash
from models.sbd.evaluate import splits
from models.sbd.evaluate.holdout import check_trainable
from models.sbd.neural import comparison, outofsample
from models.sbd.neural.params import Neural
from models.sbd.params import Params
from models.sbd.usable import Dropped
from models.sbd.windows import Windows, read
from pipelines.output import print_json, progress
from pipelines.rows import training_table
from pipelines.sbd.steps import Job

if TYPE_CHECKING:
    from models.sbd.neural.training import Epoch

FAMILY = "smartsbd-series"
SERIES = Path("data/processed/series.parquet")
OUT = Path("reports/neural")
OTHERS = Path("reports/sbd/predictions.parquet")
KEPT = Path("data/reference/neural.json")
"""The protocol's results that the card tells; a new measurement is copied there on purpose."""


@dataclass
class NeuralJob:
    """Where a training of the neural classifier reads and writes."""

    features: Path
    out: Path
    sbd: Params
    neural: Neural
    others: Path | None = None
    kept: Path = KEPT
    zoo: Path | None = None
    dropped: Dropped = field(default_factory=Dropped)

    @property
    def plain(self) -> Job:
        """The same for functions of the other trainings."""
        return Job(features=self.features, out=self.out, params=self.sbd, zoo=self.zoo)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the series' columns."""
        return [feature.name for feature in features_of(FAMILY)]

    @cached_property
    def table(self) -> Windows:
        """Labelled rows with finite series; says what it leaves out.

        Raises
        ------
        UserError
            When it has no series, windows are there twice, or nothing is left to learn from.
        """
        if self.columns[0] not in read(self.features).columns:
            raise UserError(
                f"{self.features}: no series in it: make the table with `cczoo features series "
                f"--events DIR --out {SERIES}`"
            )
        table, self.dropped = training_table(self.features, self.columns)
        check_trainable(table, self.sbd.protocol, str(self.features))
        return table

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the series were computed with."""
        return self.plain.settings

    @cached_property
    def data_hash(self) -> str:
        """Content of the table, see `models.sbd.content`."""
        return content_hash(self.table, features_of(FAMILY))

    def rows(self, table: Windows) -> NDArray[np.float32]:
        """Their series, float32 [N, d]."""
        return table.matrix(self.columns).astype(np.float32)


def run(args: argparse.Namespace, default_features: Path) -> int:
    """Run the steps asked for: all but the search unless one is named."""
    from models import parallel
    from pipelines import params as settings
    from pipelines.sbd import neural_fit

    for given, flag in ((args.events, "--events"), (args.budget, "--budget")):
        if given:
            raise UserError(f"{flag} doesn't go with --model neural: leave it out")
    found = settings.load(args.params).models.sbd
    features = SERIES if args.features == default_features else args.features
    job = NeuralJob(
        features=features,
        out=args.out or OUT,
        sbd=found,
        neural=found.neural,
        # Their predictions number the rows of the pipeline's own table.
        others=OTHERS if features == SERIES else None,
        zoo=args.zoo,
    )
    if args.seed is not None:
        job.neural = job.neural.model_copy(update={"seed": args.seed})
    steps = {"search": search, "protocol": measure, "fit": neural_fit.fit}
    summary: dict[str, Any] = {}
    try:
        for step in [args.step] if args.step else ["protocol", "fit"]:
            summary[step] = steps[step](job)
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
    job.plain.write("choice.json", choice)
    return choice


def measure(job: NeuralJob) -> dict[str, Any]:
    """Every split of the protocol, beside the other models; ``neural.json``, ``answers.parquet``.

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
    choice = job.out / "choice.json"
    result = {
        "settings": job.neural.model_dump(mode="json"),
        "data_hash": job.data_hash,
        "windows": len(job.table),
        "connections": int(np.unique(job.table.group).size),
        "choice": job.plain.read("choice.json") if choice.is_file() else None,
        "protocols": rows,
    }
    job.plain.write("neural.json", result)
    return result


def told(epochs: int) -> Callable[[Epoch], None]:
    """What moves the progress bar after each epoch, and says more where there is no terminal."""
    bar = iter(progress(range(epochs), "epochs", epochs))
    next(bar)

    def tell(epoch: Epoch) -> None:
        next(bar, None)
        if not sys.stderr.isatty():
            print(
                f"epoch {epoch.epoch + 1}/{epochs}: loss {epoch.loss:.4f}, validation "
                f"{epoch.validation_loss:.4f} ({epoch.validation_accuracy:.4f} right)",
                file=sys.stderr,
            )

    return tell


ABOUT_TESTS = ("splits", "repeats", "validation_folds")
"""Settings that say how often is tested: the network is the same without them."""


def measured(path: Path, job: NeuralJob) -> Mapping[str, Any] | None:
    """Results of :func:`measure`, None where there are none of this network on this table."""
    if not path.is_file():
        return None
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))

    def network(settings: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in settings.items() if key not in ABOUT_TESTS}

    mine = network(job.neural.model_dump(mode="json"))
    same = network(found.get("settings", {})) == mine
    return found if same and found.get("data_hash") == job.data_hash else None


def _run(job: NeuralJob, tasks: list[outofsample.Task]) -> pl.DataFrame:
    rows = job.rows(job.table)
    workers = job.sbd.workers

    def tell(items: Any, what: str, total: int) -> Any:
        return progress(items, what, total)

    return outofsample.run(job.table, rows, tasks, job.out / "parts", workers, tell)


def _print(summary: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from models.sbd.card import interval

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
