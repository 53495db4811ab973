"""The inputs, outputs and settings of a training of the neural classifier."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from features.sbd import features_of
from models.sbd.content import content_hash
from models.sbd.evaluate.holdout import check_trainable
from models.sbd.neural.params import Neural
from models.sbd.params import Params
from models.sbd.results.neural import NEURAL, Measured
from models.sbd.rows import training_table
from models.sbd.train.job import Job
from models.sbd.usable import Dropped
from models.sbd.windows import Windows, read
from pipelines.output import progress
from pipelines.sbd.train.shared import SERIES

if TYPE_CHECKING:
    from models.sbd.neural.training import Epoch


FAMILY = "smartsbd-series"


OTHERS = Path("reports/sbd/predictions.parquet")


KEPT = Path("data/reference/neural.json")
"""The protocol's results that the card states; a new measurement is copied there on purpose."""


@dataclass
class NeuralJob:
    """The inputs, outputs and settings of a training of the neural classifier."""

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
        """The same job, as functions of the other trainings take it."""
        return Job(features=self.features, out=self.out, params=self.sbd, zoo=self.zoo)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the series' columns."""
        return [feature.name for feature in features_of(FAMILY)]

    @cached_property
    def table(self) -> Windows:
        """Labelled rows with finite series; prints which rows are left out.

        Raises
        ------
        UserError
            When the table has no series, a window occurs twice, or no row is left to learn from.
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
        """Settings that the series were computed with."""
        return self.plain.settings

    @cached_property
    def data_hash(self) -> str:
        """Hash of the table's content, see `models.sbd.content`."""
        return content_hash(self.table, features_of(FAMILY))

    def rows(self, table: Windows) -> NDArray[np.float32]:
        """Series of a table's rows: float32 array [N, d]."""
        return table.matrix(self.columns).astype(np.float32)


def reporter(epochs: int) -> Callable[[Epoch], None]:
    """Make a callback that moves a progress bar after each epoch; without a terminal it prints."""
    bar = iter(progress(range(epochs), "epochs", epochs))
    next(bar)

    def report(epoch: Epoch) -> None:
        next(bar, None)
        if not sys.stderr.isatty():
            print(
                f"epoch {epoch.epoch + 1}/{epochs}: loss {epoch.loss:.4f}, validation "
                f"{epoch.validation_loss:.4f} ({epoch.validation_accuracy:.4f} right)",
                file=sys.stderr,
            )

    return report


ABOUT_TESTS = ("splits", "repeats", "validation_folds")
"""Settings of how often the network is tested; they don't change the network."""


def measured(path: Path, job: NeuralJob) -> Measured | None:
    """Results of `measure` for this network on this table; None if there are none."""
    if not path.is_file():
        return None
    found = NEURAL.read_at(path)

    def network(settings: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in settings.items() if key not in ABOUT_TESTS}

    mine = network(job.neural.model_dump(mode="json"))
    same = network(found.settings) == mine
    return found if same and found.data_hash == job.data_hash else None
