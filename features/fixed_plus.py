"""The scale-free features in integers: what exported code computes, bit for bit.

They are the features of :mod:`features.smartsbd_plus` that need neither a Fourier transform, nor
an exponential, nor single packets, on a window that is thinned to at most 128 points. A log and a
kernel both come to :func:`values`, so each feature has this one definition:

- a queueing delay is the RTT less the smallest RTT up to the window's end; delays are shortened
  to 14 bits by the same shift in both subflows, which no feature notices, being free of scale;
- ranks, percentiles and distances of distributions look at the upper 11 of these bits, so that
  counting takes the place of sorting;
- sums are exact, and only what is divided at the end is rounded
  (:mod:`features.fixed_numbers`).

All features are symmetric in the subflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from features.arrays import Int
from features.fixed_numbers import Q16, correlation, log_ratio, quotient

POINTS = 128
"""Points of a window that count at most: every so many-th of its grid."""
BLOCKS = 8
"""Windows that the long features look at, the present one included."""
VALUE_BITS = 14
"""Length of a queueing delay, in units of the window's own largest."""
LEVEL_BITS = 11
"""Length of the upper part that ranks and distributions look at."""
MEAN_BITS = 2
"""Binary places that moving averages have beyond these."""
LOW_PASS_RTTS = 6
"""Width of the moving average that splits slow from fast, in larger min RTTs."""
FLOOR_PARTS = 50
"""Levels below one part in this of the larger subflow's mean queue count as that much."""


class Block(NamedTuple):
    """A window thinned to at most :data:`POINTS` points.

    Attributes
    ----------
    rtt_us : int64 array [2, points]
    congested : bool array [2, points]
        Whether the subflow was congested at the point or at one left out after it.
    step_q16 : int
        Distance of two points in 1/65536 us.
    """

    rtt_us: Int
    congested: NDArray[np.bool_]
    step_q16: int


class View(NamedTuple):
    """What the features are made of.

    Attributes
    ----------
    history : sequence of int64 array [2, points]
        RTTs of up to seven earlier windows of the same connection, thinned, oldest first.
    newest : Block
        The window.
    min_rtt_us : (int, int)
        Smallest RTT of each subflow before the window.
    base_us : (int, int)
        The same up to its end.
    """

    history: Sequence[Int]
    newest: Block
    min_rtt_us: tuple[int, int]
    base_us: tuple[int, int]


class Moments(NamedTuple):
    """Sums of two series that correlations are made of, times the number of points."""

    covariance: int
    first: int
    second: int
    apart: int
    """Difference of the two sums."""


def block(rtt_us: Int, congested: NDArray[np.bool_], step_q16: int) -> Block:
    """Thin a window.

    Parameters
    ----------
    rtt_us : int64 array [2, n]
    congested : bool array [2, n]
    step_q16 : int
        The grid's step in 1/65536 us.
    """
    points = rtt_us.shape[1]
    stride = -(-points // POINTS)
    met = np.logical_or.reduceat(congested, np.arange(0, points, stride), axis=1)
    return Block(thinned(rtt_us, points), met, step_q16 * stride)


def thinned(rtt_us: Int, points: int) -> Int:
    """Every so many-th point, so that a window of ``points`` keeps :data:`POINTS` at most."""
    return rtt_us[:, :: -(-points // POINTS)]


def values(view: View) -> dict[str, int]:
    """All features of one window by name, in 1/65536."""
    newest = view.newest
    queues = _queues(newest.rtt_us, view.base_us)
    lags, width, change = _widths(view, newest.step_q16, queues.shape[1])
    low, high = _split(queues, width)
    changes = queues[:, change:] - queues[:, :-change] if change else queues[:, :0]
    levels = queues >> VALUE_BITS - LEVEL_BITS
    ranks = np.stack([_ranks(one) for one in levels])
    mean, total = queues.sum(axis=1), int(queues.sum())
    apart = int(np.abs(queues[0] - queues[1]).sum())
    squares = _moments(*queues)
    return {
        "Queue_Diff": min(quotient(2 * abs(squares.apart), total), 2 * Q16),
        "Queue_Abs_Diff": min(quotient(2 * apart, total), 2 * Q16),
        "Queue_Mean_LogRatio": log_ratio(int(mean[0]), int(mean[1]), _floor(queues)),
        "Queue_SD_LogRatio": log_ratio(
            math.isqrt(squares.first), math.isqrt(squares.second), _floor(queues)
        ),
        **{f"Queue_P{p}_LogRatio": _percentiles(levels, p) for p in (10, 50, 95)},
        "Queue_KS": _ks(levels),
        "Corr": _correlation(queues),
        "Corr_Rank": _correlation(ranks),
        "Corr_Low": _correlation(low),
        "Corr_High": _correlation(high),
        "Corr_Diff": _correlation(changes),
        "Lag_Corr": _lagged(queues, lags),
        "Lag_Corr_High": _lagged(high, lags),
        "Lag_Corr_Diff": _lagged(changes, lags),
        "Concordance": _concordance(queues),
        "Lag_Concordance": _lagged_concordance(queues, lags),
        "Full_Overlap": _overlap(5 * ranks >= 8 * (queues.shape[1] - 1)),
        "Drained_Overlap": _overlap(5 * ranks <= 2 * (queues.shape[1] - 1)),
        "Congested_Overlap": _overlap(newest.congested),
        "Congested_Corr": _correlation(newest.congested.astype(np.int64)),
        "Other_Queue_At_Loss": _other_queue(newest.congested, ranks),
        **_long(view),
    }


def _long(view: View) -> dict[str, int]:
    queues = _queues(np.concatenate([*view.history, view.newest.rtt_us], axis=1), view.base_us)
    lags, width, _ = _widths(view, view.newest.step_q16, queues.shape[1])
    levels = queues >> VALUE_BITS - LEVEL_BITS
    return {
        "Long_Concordance": _lagged_concordance(queues, lags),
        "Long_Corr": _correlation(queues),
        "Long_Corr_High": _correlation(_split(queues, width)[1]),
        "Long_Queue_KS": _ks(levels),
        "Long_Queue_P50_LogRatio": _percentiles(levels, 50),
        "Long_Queue_P95_LogRatio": _percentiles(levels, 95),
    }


def _queues(rtt_us: Int, base_us: tuple[int, int]) -> Int:
    """Queueing delays, shortened so that the largest has :data:`VALUE_BITS` bits at most."""
    queues = np.maximum(rtt_us - np.array(base_us)[:, None], 0)
    return np.asarray(queues >> max(0, int(queues.max()).bit_length() - VALUE_BITS), np.int64)


def _widths(view: View, step_q16: int, points: int) -> tuple[int, int, int]:
    """In points: the lags searched, the width of the moving average, the reach of a change."""
    smaller, larger = (rtt << 16 for rtt in sorted(view.min_rtt_us))
    lags = min(max(1, (larger - smaller + step_q16 // 2) // step_q16), points // 8)
    width = min(max(3, (LOW_PASS_RTTS * larger + step_q16 // 2) // step_q16), points // 2)
    change = min(max(1, (larger + step_q16 // 2) // step_q16), points // 4)
    return lags, width, change


def _split(queues: Int, width: int) -> tuple[Int, Int]:
    """Centred moving averages, over fewer points at the edges, and what they leave."""
    points = queues.shape[1]
    sums = np.concatenate([np.zeros((2, 1), np.int64), queues.cumsum(axis=1)], axis=1)
    at = np.arange(points)
    begin, end = np.maximum(at - width // 2, 0), np.minimum(at + (width + 1) // 2, points)
    low = ((sums[:, end] - sums[:, begin]) << MEAN_BITS) // (end - begin)
    return low, (queues << MEAN_BITS) - low


def _moments(x: Int, y: Int) -> Moments:
    n, one, other = x.size, int(x.sum()), int(y.sum())
    return Moments(
        n * int(x @ y) - one * other,
        n * int(x @ x) - one * one,
        n * int(y @ y) - other * other,
        one - other,
    )


def _correlation(pair: Int) -> int:
    found = _moments(pair[0], pair[1])
    return correlation(found.covariance, found.first, found.second)


def _concordance(pair: Int) -> int:
    """Lin's concordance: correlation that asks for equal means and spreads too."""
    found = _moments(pair[0], pair[1])
    return quotient(2 * found.covariance, found.first + found.second + found.apart**2)


def _shifted(pair: Int, lags: int) -> list[Int]:
    x, y = pair
    n = x.size
    later = [np.stack([x[: n - lag], y[lag:]]) for lag in range(lags + 1)]
    return later + [np.stack([x[lag:], y[: n - lag]]) for lag in range(1, lags + 1)]


def _lagged(pair: Int, lags: int) -> int:
    return max(_correlation(one) for one in _shifted(pair, lags))


def _lagged_concordance(pair: Int, lags: int) -> int:
    return max(_concordance(one) for one in _shifted(pair, lags))


def _floor(values: Int) -> int:
    """The smallest level that counts, in sums over the points."""
    return int(values.sum(axis=1).max()) // FLOOR_PARTS


def _counts(levels: Int) -> Int:
    """How many points are at each level or below."""
    return np.asarray(np.bincount(levels, minlength=1 << LEVEL_BITS).cumsum(), np.int64)


def _ranks(levels: Int) -> Int:
    """Twice the rank of each point, from 0; equal ones share theirs."""
    upto = _counts(levels)
    below = np.concatenate([[0], upto[:-1]])
    return np.asarray(upto[levels] + below[levels] - 1, np.int64)


def _percentiles(levels: Int, percent: int) -> int:
    """``|ln|`` of the ratio of two percentiles, on the line between the two levels nearest."""
    n = levels.shape[1]
    place, rest = divmod((n - 1) * percent, 100)
    found = []
    for one in levels:
        upto = _counts(one)
        low, high = (int(np.searchsorted(upto, k, side="right")) for k in (place, place + 1))
        found.append(n * (100 * low + ((high - low) * rest if rest else 0)))
    return log_ratio(found[0], found[1], 100 * _floor(levels))


def _ks(levels: Int) -> int:
    """Kolmogorov-Smirnov: the largest gap between the two distributions."""
    gap = np.abs(_counts(levels[0]) - _counts(levels[1])).max()
    return quotient(int(gap), levels.shape[1])


def _overlap(pair: NDArray[np.bool_]) -> int:
    """Share of the points where both hold among those where one does; 0 if none does."""
    both, either = (int(np.count_nonzero(one)) for one in (pair[0] & pair[1], pair[0] | pair[1]))
    return quotient(both, either)


def _other_queue(congested: NDArray[np.bool_], ranks: Int) -> int:
    """Mean rank of a queue when the other subflow turns congested; a half if none does."""
    begins = congested[:, 1:] & ~congested[:, :-1]
    count = int(np.count_nonzero(begins))
    if not count:
        return Q16 // 2
    total = int((ranks[::-1, 1:] * begins).sum())
    return quotient(total, 2 * (ranks.shape[1] - 1) * count)
