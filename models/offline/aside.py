"""Logged decisions that nothing was learned from, to ask from them on what a policy is worth."""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from data.decisions.run import Run
from data.errors import UserError
from models.offline.acting import Acting
from models.offline.params import Evaluation
from models.offline.source import Source
from models.offline.weighting import Float

Starts = Literal["every", "first"]


@dataclass
class Aside:
    """Logged decisions to judge by: runs set aside, and the decisions in them to begin from.

    Attributes
    ----------
    runs : list of Run
    steps : list of int64 array
        Decisions of each run.
    """

    source: Source
    settings: Evaluation
    runs: list[Run] = field(default_factory=list)
    steps: list[NDArray[np.int64]] = field(default_factory=list)

    @classmethod
    def of(
        cls, source: Source, settings: Evaluation, starts: Starts = "every",
        against: str | None = None,
    ) -> Aside:  # fmt: skip
        """Choose them.

        Parameters
        ----------
        source : Source
        settings : Evaluation
        starts : {"every", "first"}
            From every ``spacing``-th decision of a run on, or from its first alone.
        against : str, optional
            Only in runs of this control.

        Raises
        ------
        UserError
            When there are none, or all are of one scenario: then there is no interval.
        """
        found = cls(source, settings)
        fitting = (
            run
            for run in source.runs(True)
            if run.steps > found.length and against in (None, run.behaviour)
        )
        # The same ones whatever their order, and no more than these in memory.
        found.runs = heapq.nsmallest(
            settings.most_runs, fitting, key=lambda run: zlib.crc32(run.name.encode())
        )
        for run in found.runs:
            # Of the last decision of a record nobody knows what came.
            last = run.steps - 1 - found.length
            every = np.arange(0, last + 1 if starts == "every" else 1, settings.spacing)
            found.steps.append(every)
        if len(set(found.names)) < 2:
            of = f" of {against!r}" if against else ""
            raise UserError(
                f"{source.path}: less than two {source.key}s{of} were set aside with runs of more "
                f"than {found.length} decisions: log more, or set held_out higher and train again"
            )
        return found

    @property
    def length(self) -> int:
        """Decisions over which logged returns are summed."""
        gamma, horizon = self.settings.gamma, self.settings.horizon
        if gamma == 0:
            return horizon
        return max(horizon, math.ceil(math.log(self.settings.tail) / math.log(gamma)))

    @property
    def names(self) -> list[str]:
        """What each run is resampled by."""
        by_scenario = self.source.key == "scenario"
        return [run.scenario if by_scenario else run.name for run in self.runs]

    @property
    def cluster(self) -> NDArray[np.int64]:
        """Cluster of each decision to begin from, int64 array [N]."""
        _, code = np.unique(self.names, return_inverse=True)
        return np.repeat(code, [len(steps) for steps in self.steps]).astype(np.int64)

    def rewards(self, length: int) -> Float:
        """What was logged, a subflow's mean, float64 array [N, length]."""
        return self.gathered([run.reward.mean(axis=1) for run in self.runs], length)

    def gathered(self, values: Sequence[NDArray[Any]], length: int) -> Float:
        """Rows from each beginning on: arrays [T] of each run -> float64 array [N, length]."""
        rows = np.arange(length)
        parts = [one[steps[:, None] + rows] for one, steps in zip(values, self.steps, strict=True)]
        found: Float = np.concatenate(parts).astype(np.float64)
        return found

    def odds(self, policy: Acting) -> list[Float]:
        """A policy's odds of each action, float64 array [T, S, C] of each run."""
        return [
            policy.along(run, self.source)[:, : run.subflows].double().numpy() for run in self.runs
        ]

    def taken(self, odds: Sequence[Float]) -> list[Float]:
        """Odds of the joint actions that were logged, float64 array [T] of each run."""
        found = []
        for run, each in zip(self.runs, odds, strict=True):
            actions = run.action.astype(np.int64)[..., None]
            found.append(np.take_along_axis(each, actions, -1)[..., 0].prod(axis=1))
        return found
