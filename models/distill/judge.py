"""Judge a student: its return against its teacher's, on the same episodes of the test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.student import quantile
from models.distill.others import Acting
from models.distill.params import Distill
from models.distill.rollout import Task, returns
from models.envs.samplers import HELD_OUT


@dataclass(frozen=True)
class Relative:
    """A relative difference over seeds: its mean and 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float

    def plain(self) -> dict[str, float]:
        """For JSON, with as many digits as mean something."""
        return {"mean": round(self.mean, 5), "low": round(self.low, 5), "high": round(self.high, 5)}


def tested(task: Task, student: Acting | None, params: Distill) -> NDArray[np.float64]:
    """Mean return of each seed's episodes of the test, float64 array [seeds]; None: the teacher."""
    found = [
        returns(task, student, HELD_OUT, seed, params.episodes, params.steps).mean()
        for seed in range(0, params.seeds * params.episodes, params.episodes)
    ]
    return np.array(found)


def relative(student: NDArray[np.float64], teacher: NDArray[np.float64]) -> Relative:
    """(student - teacher) / teacher, paired by seed.

    Differences are divided by the size of the teacher's mean return, which doesn't vanish where
    that of one seed may.
    """
    shares = (student - teacher) / abs(float(teacher.mean()))
    half = quantile(0.95, len(shares) - 1) * float(shares.std(ddof=1)) / len(shares) ** 0.5
    mean = float(shares.mean())
    return Relative(mean, mean - half, mean + half)
