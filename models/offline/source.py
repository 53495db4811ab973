"""A data set of decisions, streamed: never more than a buffer of it is in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset

from data.decisions import files
from data.decisions.run import Run
from data.decisions.schema import About
from data.errors import UserError
from data.fleet.selection import Selection
from models.offline.params import Offline
from models.offline.windows import Cutter, Windows, shuffled
from models.policies.observed import observed

AGENTS = ("tcco",)
"""Whose decisions can be learned from: agents with one kind of parts."""
TOGETHER = 16
"""Files that are read side by side: one holds runs of one control in one family of scenarios."""
VALIDATED = 16
"""Batches of runs set aside that a validation takes at most."""


class Source:
    """The runs of a data set, those to learn from and those set aside.

    Parameters
    ----------
    path : Path
        A file of decisions, or a folder of them.
    settings : Offline
    selection : Selection, optional
        The rows of a store that were copied there.

    Raises
    ------
    UserError
        When there are no decisions, or they are of an agent that can't be learned offline.
    """

    def __init__(self, path: Path, settings: Offline, selection: Selection | None = None) -> None:
        self.path, self.settings, self.selection = path, settings, selection
        # Tests are for who judges.
        self.files = [file for file in files.files(path) if files.split(file) != "test"]
        self.about: About = files.about(path)
        if self.about.agent not in AGENTS:
            raise UserError(
                f"{self.name}: decisions of {self.about.agent}: offline methods learn those of "
                f"{', '.join(AGENTS)}"
            )
        features, half = observed(self.about.agent, 0)
        if self.about.observation != tuple(one.name for one in features):
            seen = ", ".join(self.about.observation)
            raise UserError(f"{self.name}: observes {seen}, this version something else: make the "
                            "decisions again")  # fmt: skip
        self.cutter = Cutter(settings.context, settings.subflows, (features, half))

    @property
    def name(self) -> str:
        """Where the decisions are kept: a copy of a store's goes with its command."""
        return str(self.path) if self.selection is None else self.selection.store

    @cached_property
    def key(self) -> str:
        """What runs are set aside by.

        ``split`` where the data set has splits, whose validation then is set aside; ``run`` if
        that is asked for or all runs are of one scenario; ``scenario`` otherwise.
        """
        if any(map(files.split, self.files)):
            return "split"
        if self.settings.split == "scenario":
            names = pl.scan_parquet(self.files, hive_partitioning=False).select("scenario")
            if names.unique().collect(engine="streaming").height > 1:
                return "scenario"
        return "run"

    def set_aside(self, run: Run, file: Path) -> bool:
        """Whether nothing is to be learned from a run; the same whatever the seed."""
        if self.key == "split":
            return files.split(file) == "validation"
        text = run.scenario if self.key == "scenario" else run.name
        share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / (1 << 32)
        return share < self.settings.held_out

    def runs(self, aside: bool, rng: np.random.Generator | None = None) -> Iterator[Run]:
        """Runs of one side, file by file; with a generator of many files in turns."""
        if rng is None:
            for file in self._of(aside):
                yield from self._taken(file, aside)
            return
        waiting = self._of(aside)
        order = [waiting[i] for i in rng.permutation(len(waiting))]
        together: list[Iterator[Run]] = []
        while order or together:
            while order and len(together) < TOGETHER:
                together.append(self._taken(order.pop(), aside))
            for one in list(together):
                run = next(one, None)
                if run is None:
                    together.remove(one)
                else:
                    yield run

    def _of(self, aside: bool) -> list[Path]:
        """Files that may have runs of a side."""
        if self.key != "split":
            return self.files
        return [file for file in self.files if (files.split(file) == "validation") == aside]

    def _taken(self, file: Path, aside: bool) -> Iterator[Run]:
        for run in files.runs(file):
            if self.set_aside(run, file) == aside and run.subflows <= self.settings.subflows:
                yield run

    def windows(self, aside: bool, rng: np.random.Generator) -> Iterator[Windows]:
        """Some windows of each run of one side; they begin anywhere."""
        for run in self.runs(aside, rng):
            yield self._some(run, self._starts(run, rng), rng)

    def _starts(self, run: Run, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.cutter.starts(run, int(rng.integers(self.settings.context)))

    def _some(self, run: Run, starts: NDArray[np.int64], rng: np.random.Generator) -> Windows:
        few = min(len(starts), self.settings.of_run)
        return self.cutter.cut(run, rng.choice(starts, few, replace=False))

    def batches(self, seed: int) -> Iterator[Windows]:
        """Shuffled batches to learn from, without end.

        Raises
        ------
        UserError
            When there is less than a batch.
        """
        rng = np.random.default_rng([seed, 1])
        settings = self.settings
        yield from shuffled(self._endless(seed), settings.batch, settings.shuffle, rng)

    def _endless(self, seed: int) -> Iterator[Windows]:
        epoch, settings = 0, self.settings
        while True:
            rng = np.random.default_rng([seed, 0, epoch])
            there = 0
            for run in self.runs(False, rng):
                starts = self._starts(run, rng)
                there += len(starts)
                yield self._some(run, starts, rng)
            if there < settings.batch:
                raise UserError(
                    f"{self.name}: less than {settings.batch} windows of {settings.context} "
                    f"decisions of up to {settings.subflows} subflows to learn from: make more "
                    "decisions, or choose a smaller batch"
                )
            epoch += 1


def tensors(one: Windows) -> dict[str, torch.Tensor]:
    """Windows as torch takes them."""
    return {name: torch.from_numpy(np.ascontiguousarray(v)) for name, v in one.arrays().items()}


class _Stream(IterableDataset[dict[str, torch.Tensor]]):
    """Batches of a length that nobody has to know."""

    def __init__(self, batches: Callable[[], Iterable[dict[str, torch.Tensor]]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        yield from self.batches()


class Decisions(lightning.LightningDataModule):
    """What a training of Lightning takes a data set of decisions from.

    Parameters
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def train_dataloader(self) -> Any:
        """Batches without end; a training counts its updates."""
        seed = self.source.settings.seed
        return DataLoader(_Stream(lambda: map(tensors, self.source.batches(seed))), batch_size=None)

    def val_dataloader(self) -> Any:
        """Some batches of runs that were set aside, always the same."""
        return DataLoader(_Stream(lambda: self._validation), batch_size=None)

    @cached_property
    def _validation(self) -> list[dict[str, torch.Tensor]]:
        settings, rng = self.source.settings, np.random.default_rng(0)
        held = 2 * VALIDATED * settings.batch
        found = shuffled(self.source.windows(True, rng), settings.batch, held, rng)
        return [tensors(one) for _, one in zip(range(VALIDATED), found, strict=False)]
