"""Dynamic time warping distance of one pair, of many, or within a band.

The local cost is the squared Euclidean distance of two points, the distance the square root of
the cheapest path's sum, as in tslearn (Sakoe and Chiba 1978, smartsbd.txt reference 54).
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from features.dtw_simd import squared_distances

Float = NDArray[np.float64]
Int = NDArray[np.int64]

SIMD_DIMS = 3
"""Points of more dimensions take the scalar way."""

_LARGEST = 1e140
"""Must stay well below the value of padding points, ``dtw_simd.PAD``."""


def dtw(a: Float, b: Float, band: int | None = None) -> float:
    """DTW distance of two series.

    Parameters
    ----------
    a, b : float64 array [n] or [n, d], [m] or [m, d]
        Series, finite, n and m at least 1.
    band : int, optional
        Cells further than this from the diagonal (scaled to the lengths) are closed.

    Returns
    -------
    float
        Distance in the series' unit.

    Raises
    ------
    ValueError
        On empty, non-finite or unlike shapes.
    """
    first, second = _points(a), _points(b)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"series of {first.shape[1]} and {second.shape[1]} dimensions")
    width = max(first.shape[0], second.shape[0]) if band is None else band
    return float(_scalar(first, second, width))


def dtw_many(pairs: Sequence[tuple[Float, Float]]) -> Float:
    """DTW distances of many pairs, side by side in SIMD lanes.

    Parameters
    ----------
    pairs : sequence of (float64 array [n] or [n, d], float64 array [m] or [m, d])
        Lengths and dimensions may differ from pair to pair.

    Returns
    -------
    float64 array [len(pairs)]
        Distances in the pairs' order, the same values as :func:`dtw` gives.

    Raises
    ------
    ValueError
        As :func:`dtw`; beyond 1e140 in magnitude too.
    """
    out = np.empty(len(pairs))
    by_dims: dict[int, list[int]] = {}
    points = [(_points(a), _points(b)) for a, b in pairs]
    for index, (a, b) in enumerate(points):
        if a.shape[1] != b.shape[1]:
            raise ValueError(f"pair {index}: series of {a.shape[1]} and {b.shape[1]} dimensions")
        by_dims.setdefault(a.shape[1], []).append(index)
    for dims, indices in by_dims.items():
        if dims > SIMD_DIMS:
            out[indices] = [dtw(*points[i]) for i in indices]
            continue
        series = [[points[i][place] for i in indices] for place in (0, 1)]
        lengths = [np.array([len(x) for x in each], np.int64) for each in series]
        flat = [np.concatenate(each) for each in series]
        out[indices] = _run(flat[0], lengths[0], flat[1], lengths[1])
    return out


def dtw_stacked(a: Float, b: Float) -> Float:
    """DTW distances of ``a[p]`` and ``b[p]``, the fastest form of :func:`dtw_many`.

    Parameters
    ----------
    a : float64 array [pairs, n, d]
        First series, d at most 3.
    b : float64 array [pairs, m, d]
        Second series.

    Returns
    -------
    float64 array [pairs]
        Distances.
    """
    count, n, dims = a.shape
    if b.shape[0] != count or b.shape[2] != dims or not 1 <= dims <= SIMD_DIMS:
        raise ValueError(f"stacks of shape {a.shape} and {b.shape}")
    flat_a = np.ascontiguousarray(a, np.float64).reshape(-1, dims)
    flat_b = np.ascontiguousarray(b, np.float64).reshape(-1, dims)
    return _run(flat_a, np.full(count, n), flat_b, np.full(count, b.shape[1]))


def _run(a: Float, a_length: Int, b: Float, b_length: Int) -> Float:
    if a_length.size == 0:
        return np.empty(0)
    if min(a_length.min(), b_length.min()) < 1:
        raise ValueError("a series without points")
    if not (np.abs(a).max() < _LARGEST and np.abs(b).max() < _LARGEST):
        raise ValueError("a value isn't finite or is beyond 1e140")
    a_start = np.cumsum(a_length) - a_length
    b_start = np.cumsum(b_length) - b_length
    # Pairs of like lengths share a vector, so that little is padded.
    order = np.lexsort((b_length, a_length))
    squared = squared_distances(a, a_start, a_length, b, b_start, b_length, order)
    return np.asarray(np.sqrt(squared))


def _points(series: Float) -> Float:
    values = np.ascontiguousarray(series, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"a series of shape {np.shape(series)}")
    if not np.isfinite(values).all():
        raise ValueError("a value isn't finite")
    return values


@numba.njit(cache=True, nogil=True)
def _scalar(a: Float, b: Float, band: int) -> float:
    n, m = a.shape[0], b.shape[0]
    row = np.full(m + 1, np.inf)
    row[0] = 0.0
    slope = m / n
    # A band narrower than one row's step would cut the corner off.
    reach = max(float(band), slope)
    for i in range(n):
        centre = (i + 0.5) * slope - 0.5
        first = max(0, int(np.ceil(centre - reach)))
        last = min(m - 1, int(np.floor(centre + reach)))
        diagonal = row[first]
        row[first] = np.inf
        left = np.inf
        for j in range(first, last + 1):
            cost = 0.0
            for k in range(a.shape[1]):
                difference = a[i, k] - b[j, k]
                cost += difference * difference
            best = min(min(diagonal, row[j + 1]), left)
            diagonal = row[j + 1]
            left = best + cost
            row[j + 1] = left
    return float(np.sqrt(row[m]))
