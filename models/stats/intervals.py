"""Intervals that take the dependence between splits and between windows into account."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypedDict  # pydantic takes that of typing from Python 3.12 on

from data.student import quantile


class Interval(TypedDict):
    """A mean with the limits of its confidence interval; ``None`` if undefined."""

    mean: float | None
    low: float | None
    high: float | None


class Counted(Interval):
    """The interval of a mean over windows, and what it is a mean of."""

    windows: int
    connections: int


def over_splits(values: ArrayLike, test_share: float, confidence: float = 0.95) -> Interval:
    """Interval of a mean over repeated shuffle splits of one data set.

    Training sets overlap, so that the plain t interval is too narrow; the variance is enlarged by
    ``1/J + n_test/n_train`` (Nadeau and Bengio, Machine Learning 52, 2003).

    Parameters
    ----------
    values : float array [J]
        One figure per split; NaN is left out.
    test_share : float
        Share of the data that each split tests on.
    confidence : float
        Coverage aimed at.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if x.size == 0:
        return Interval(mean=None, low=None, high=None)
    mean = float(x.mean())
    if x.size == 1:
        return Interval(mean=mean, low=None, high=None)
    spread = math.sqrt(float(x.var(ddof=1)) * (1 / x.size + test_share / (1 - test_share)))
    half = quantile(confidence, x.size - 1) * spread
    return Interval(mean=mean, low=max(0.0, mean - half), high=min(1.0, mean + half))


def by_connection(
    hits: ArrayLike,
    group: NDArray[np.int64],
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval of a mean over windows, resampling whole connections.

    Parameters
    ----------
    hits : float array [N]
        0, 1 or a share per window.
    group : int array [N]
        The connection of each window.
    confidence, resamples, seed
        Coverage, number of resamples, seed.
    """
    x = np.asarray(hits, dtype=np.float64)
    if x.size == 0:
        return Interval(mean=None, low=None, high=None)
    _, code = np.unique(group, return_inverse=True)
    total = np.bincount(code, weights=x)
    count = np.bincount(code).astype(np.float64)
    n = total.size
    rng = np.random.default_rng(seed)
    # One row of weights per resample; in blocks, so that many connections don't fill the memory.
    means = []
    for _ in range(max(1, resamples // 100)):
        weight = rng.multinomial(n, np.full(n, 1 / n), size=100)
        means.append((weight @ total) / (weight @ count))
    low, high = np.quantile(np.concatenate(means), [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Interval(mean=float(x.mean()), low=float(low), high=float(high))
