"""Scores of the league over seeds and scenarios, differences of pairs, and ratios of steps.

A score is the league's: the interquartile mean of power. What was trained with several seeds has
an interval that draws whole seeds anew, and scenarios within each family; what has none, scenarios
alone. A difference is taken run by run before its mean is, with the same seed of both if both have
one, in the same scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.results import Result
from data.student import quantile
from models.stats.aggregate import RESAMPLES, iqm
from pipelines.league.families import FAMILIES, STANDINGS

Floats = NDArray[np.float64]
ALL = "all"
"""All families together, beside the league's standings."""
COVERAGE = 0.95
AIM = 0.5
"""Share of the steps from nothing that beginning with a network from logs is to take at most."""


class Estimate(Result):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 if the interval is above or below zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)


class Powers:
    """Power of all runs.

    Parameters
    ----------
    runs : polars DataFrame
        As `pipelines.studies.offline.kept.RUNS` has them.
    """

    def __init__(self, runs: pl.DataFrame) -> None:
        self.runs = runs

    @cached_property
    def players(self) -> list[str]:
        """All names, in their order."""
        return self.runs["player"].unique(maintain_order=True).to_list()

    def of(self, players: dict[str, str] | str, group: str) -> Floats | None:
        """Power of a player in a group's scenarios, or of another player in each standing.

        Returns
        -------
        float64 array [seeds, scenarios, families] or None
            One seed if there are none; None if it didn't play them all.
        """
        parts = []
        for family in members(group):
            name = players if isinstance(players, str) else players[FAMILIES[family].standing]
            mine = self.runs.filter(player=name, family=family).sort("seed", "scenario")
            if not mine.height:
                return None
            parts.append(mine["power"].to_numpy().reshape(mine["seed"].n_unique(), -1))
        return np.stack(parts, axis=-1)


def members(group: str) -> list[str]:
    """Families of a standing, or all."""
    return [name for name, one in FAMILIES.items() if group in (ALL, one.standing)]


GROUPS = (*STANDINGS, ALL)


def score(power: Floats) -> Estimate:
    """A player's score.

    Parameters
    ----------
    power : float64 array [seeds, scenarios, families]
    """
    return _bootstrapped(power)


def difference(power: Floats, other: Floats) -> Estimate:
    """How much more power a player has than another one, run by run.

    Parameters
    ----------
    power, other : float64 array [seeds, scenarios, families]
        With as many seeds, or one of them with one.
    """
    return _bootstrapped(power - other)


def _bootstrapped(values: Floats, seed: int = 0) -> Estimate:
    seeds, scenarios, families = values.shape
    rng = np.random.default_rng(seed)
    runs = rng.integers(seeds, size=(RESAMPLES, seeds, 1, 1))
    drawn = rng.integers(scenarios, size=(RESAMPLES, 1, scenarios, families))
    found = iqm(values[runs, drawn, np.arange(families)].reshape(RESAMPLES, seeds, -1))
    low, high = np.quantile(found, [0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2])
    value = float(iqm(values.reshape(seeds, -1)))
    return Estimate(value=value, low=float(low), high=float(high))


def ratio(values: Sequence[float]) -> Estimate:
    """Geometric mean of seeds' ratios, with Student's interval of their logarithms.

    Parameters
    ----------
    values : sequence of float
        Above 0; of a single one the interval has no width.
    """
    found = np.log(np.array(values, dtype=np.float64))
    middle, half = float(found.mean()), 0.0
    if len(found) > 1:
        spread = float(found.std(ddof=1)) / len(found) ** 0.5
        half = quantile(COVERAGE, len(found) - 1) * spread
    value, low, high = (float(np.exp(one)) for one in (middle, middle - half, middle + half))
    return Estimate(value=value, low=low, high=high)
