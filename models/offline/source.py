"""A data set of decisions, streamed: never more than a buffer of it is in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import polars as pl
import torch
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
VALIDATED = 32
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
        self.files = files.files(path)
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
        """Column by which runs are set aside: by runs if all are of one scenario."""
        if self.settings.split == "scenario":
            names = pl.scan_parquet(self.files, hive_partitioning=False).select("scenario")
            if names.unique().collect(engine="streaming").height > 1:
                return "scenario"
        return "run"

    def set_aside(self, run: Run) -> bool:
        """Whether nothing is to be learned from a run; the same whatever the seed."""
        text = run.scenario if self.key == "scenario" else run.name
        share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / (1 << 32)
        return share < self.settings.held_out

    def runs(self, aside: bool, rng: np.random.Generator | None = None) -> Iterator[Run]:
        """Runs of one side, file by file; in another order of files with a generator."""
        order = range(len(self.files)) if rng is None else rng.permutation(len(self.files))
        for number in order:
            for run in files.runs(self.files[number]):
                if self.set_aside(run) == aside and run.subflows <= self.settings.subflows:
                    yield run

    def windows(self, aside: bool, rng: np.random.Generator | None = None) -> Iterator[Windows]:
        """Windows of one side; they begin anywhere with a generator."""
        for run in self.runs(aside, rng):
            offset = 0 if rng is None else int(rng.integers(self.settings.context))
            yield self.cutter.cut(run, offset)

    def batches(self, seed: int) -> Iterator[Windows]:
        """Shuffled batches to learn from, without end.

        Raises
        ------
        UserError
            When there is less than a batch.
        """
        epoch, settings = 0, self.settings
        while True:
            rng = np.random.default_rng([seed, epoch])
            some = False
            for one in shuffled(self.windows(False, rng), settings.batch, settings.shuffle, rng):
                some = True
                yield one
            if not some:
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
    """Batches, either of what is learned from, without end, or of what was set aside."""

    def __init__(self, source: Source, seed: int | None) -> None:
        self.source, self.seed = source, seed

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        settings = self.source.settings
        if self.seed is not None:
            yield from map(tensors, self.source.batches(self.seed))
            return
        rng = np.random.default_rng(0)
        found = shuffled(self.source.windows(True), settings.batch, settings.shuffle, rng)
        for _, one in zip(range(VALIDATED), found, strict=False):
            yield tensors(one)


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
        return DataLoader(_Stream(self.source, self.source.settings.seed), batch_size=None)

    def val_dataloader(self) -> Any:
        """Some batches of runs that were set aside, always the same."""
        return DataLoader(_Stream(self.source, None), batch_size=None)
