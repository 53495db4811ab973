"""Aggregate scores of a few runs on several tasks, with intervals that say how sure that is.

The formulas are those of Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement
learning at the edge of the statistical precipice", NeurIPS 2021 (arXiv 2108.13264). Its authors'
library, rliable, was archived in October 2025 and stays at version 1.2.0, so that they stand here.

Scores are float64 arrays [..., runs, tasks]; leading axes, if there are any, are independent sets.
A run is a seed or a drawn scenario, a task an environment or a family of scenarios.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Statistic = Callable[..., Any]
"""Maps scores to figures; leading axes of the scores are those of the figures."""

RESAMPLES = 2000
_CHUNK = 1 << 22
"""Scores that one step of the bootstrap has in memory."""


def iqm(scores: ArrayLike) -> Any:
    """Interquartile mean: the mean of the middle half of all runs on all tasks together.

    As `scipy.stats.trim_mean` with 0.25, a quarter of the scores (rounded down) is left out at
    either end.

    Parameters
    ----------
    scores : float64 array [..., runs, tasks]

    Returns
    -------
    float64 array [...]
        A number if there is no leading axis.

    Raises
    ------
    ValueError
        When there are no scores.
    """
    flat = _matrix(scores)
    flat = flat.reshape(*flat.shape[:-2], -1)
    cut, count = flat.shape[-1] // 4, flat.shape[-1]
    # Only the middle has to stand together, not in order.
    return np.partition(flat, (cut, count - cut - 1), axis=-1)[..., cut : count - cut].mean(axis=-1)


def improvement(x: ArrayLike, y: ArrayLike) -> Any:
    """Probability of improvement: how likely a run of X scores higher than one of Y, task by task.

    The share of all pairs of a run of X and one of Y in which X is higher, ties counting half (the
    Mann-Whitney statistic over the number of pairs), averaged over tasks.

    Parameters
    ----------
    x, y : float64 array [..., runs, tasks]
        Their numbers of runs may differ.

    Returns
    -------
    float64 array [...]
        Between 0 and 1; a number if there is no leading axis.

    Raises
    ------
    ValueError
        When there are no scores, or not the same tasks.
    """
    first, second = _matrix(x), _matrix(y)
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"{first.shape[-1]} and {second.shape[-1]} tasks: give the same of both")
    difference = first[..., :, None, :] - second[..., None, :, :]
    return ((np.sign(difference) + 1.0) / 2.0).mean(axis=(-3, -2, -1))


def profile(scores: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Performance profile: the share of runs that score above each threshold, tasks counting alike.

    Parameters
    ----------
    scores : float64 array [..., runs, tasks]
    thresholds : float64 array [T]

    Returns
    -------
    float64 array [..., T]
        Between 0 and 1, falling as thresholds rise.

    Raises
    ------
    ValueError
        When there are no scores.
    """
    found = _matrix(scores)
    levels = np.asarray(thresholds, dtype=np.float64)
    shares = [(found > level).mean(axis=(-2, -1)) for level in levels]
    return np.stack(shares, axis=-1)


def interval(
    statistic: Statistic,
    *scores: ArrayLike,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    whole: bool = False,
) -> tuple[Any, Any]:
    """Stratified bootstrap interval: runs are drawn with replacement within each task.

    Percentile intervals. Each argument is resampled by itself, the sets of one argument alike. To
    compare two players of the same runs, give the differences of their scores, or 1, 0.5 and 0
    for who was higher: those pairs then stay together.

    Parameters
    ----------
    statistic : callable
        Maps float64 arrays [R, ..., runs, tasks], one for each of ``scores``, to an array
        [R, ...]: `iqm`, `improvement`, or a function made of `profile`.
    scores : float64 array [..., runs, tasks]
        One or several.
    confidence, resamples, seed
        Coverage, number of resamples, seed.
    whole : bool
        Whether the same runs are drawn for all tasks. It has to be so where one run, such as a
        training, did all of them: tasks are then no independent evidence of what another would do.

    Returns
    -------
    low, high : float64 array [...]
        Shaped as what the statistic gives for the scores themselves.

    Raises
    ------
    ValueError
        When there are no scores.
    """
    given = [_matrix(one) for one in scores]
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // max(one.size for one in given))
    found = []
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn = [_resampled(one, count, rng, whole) for one in given]
        found.append(np.asarray(statistic(*drawn), dtype=np.float64))
    outer = [0.5 - confidence / 2, 0.5 + confidence / 2]
    low, high = np.quantile(np.concatenate(found), outer, axis=0)
    return low, high


def _resampled(scores: Floats, count: int, rng: np.random.Generator, whole: bool) -> Floats:
    """Draw runs anew, so many times: float64 array [count, ..., runs, tasks]."""
    runs, tasks = scores.shape[-2:]
    chosen = rng.integers(runs, size=(count, runs, 1 if whole else tasks))
    drawn = scores[..., chosen, np.arange(tasks)]
    return np.moveaxis(drawn, -3, 0)


def _matrix(scores: ArrayLike) -> Floats:
    """Scores as an array of runs and tasks, of which there are some."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim < 2 or 0 in found.shape[-2:]:
        raise ValueError(f"scores of shape {found.shape}: give some runs (rows) on tasks (columns)")
    return found
