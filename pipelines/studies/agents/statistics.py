"""Statistics over seeds, after Agarwal et al. (NeurIPS 2021; see `models.stats.aggregate`).

A run is a training's seed, a task a test episode, which is the same for everybody. One training
plays all episodes, and a good one is good in most: so whole seeds are drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data.student import quantile
from models.stats import aggregate
from pipelines.studies.agents.kept import Beside, Estimate, Played, Statistics
from pipelines.studies.environments.judge import CONSTANT, RANDOM, SCRIPT

Floats = NDArray[np.float64]
KINDS = (RANDOM, CONSTANT, SCRIPT)
COVERAGE = 0.95


def statistics(seeds: Floats, by_hand: Sequence[Played]) -> Statistics:
    """All figures of an agent.

    Parameters
    ----------
    seeds : float64 array [seeds, episodes]
        Returns of the trainings, at least two.
    by_hand : sequence of Played
        Policies in the same episodes.
    """
    low, high = aggregate.interval(aggregate.iqm, seeds, confidence=COVERAGE)
    value = float(aggregate.iqm(seeds))
    return Statistics(
        iqm=over_seeds(aggregate.iqm, seeds),
        stratified=Estimate(value=value, low=float(low), high=float(high)),
        beside={
            kind: _beside(seeds, best)
            for kind in KINDS
            if (best := best_of(by_hand, kind)) is not None
        },
        next_seed=next_seed(seeds.mean(axis=1)),
    )


def best_of(by_hand: Sequence[Played], kind: str) -> Played | None:
    """The policy of a kind that got most in these very episodes; None if there is none."""
    rows = [one for one in by_hand if one.kind == kind]
    return max(rows, key=lambda one: float(np.mean(one.returns)), default=None)


def _beside(seeds: Floats, policy: Played) -> Beside:
    own = np.array([policy.returns])
    return Beside(
        name=policy.name,
        iqm=float(aggregate.iqm(own)),
        difference=over_seeds(aggregate.iqm, seeds - own),
        improvement=over_seeds(lambda one: _improvement(one, own), seeds),
    )


def _improvement(seeds: Floats, own: Floats) -> Floats:
    other = np.broadcast_to(own, (*seeds.shape[:-2], *own.shape))
    found: Floats = aggregate.improvement(seeds, other)
    return found


def over_seeds(statistic: aggregate.Statistic, scores: Floats) -> Estimate:
    """A figure, and its percentile interval of drawing whole seeds anew.

    Parameters
    ----------
    statistic : callable
        Maps float64 arrays [..., seeds, episodes] to arrays [...].
    scores : float64 array [seeds, episodes]
    """
    low, high = aggregate.interval(statistic, scores, confidence=COVERAGE, whole=True)
    return Estimate(value=float(statistic(scores)), low=float(low), high=float(high))


def next_seed(means: Floats) -> Estimate:
    """Interval in which one more training of another seed lands, with 95 %.

    A prediction interval, wider than the mean's: seeds differ, and their mean isn't known. It takes
    seeds' means for normally distributed (G. J. Hahn, "Factors for calculating two-sided prediction
    intervals for samples from a normal distribution", JASA 64, 1969).

    Parameters
    ----------
    means : float64 array [seeds]
        At least two.
    """
    count = len(means)
    spread = float(means.std(ddof=1)) * (1 + 1 / count) ** 0.5
    half, middle = quantile(COVERAGE, count - 1) * spread, float(means.mean())
    return Estimate(value=middle, low=middle - half, high=middle + half)
