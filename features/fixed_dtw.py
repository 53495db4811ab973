"""Dynamic time warping of integers, as exported code computes it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from features.arrays import Int


@numba.njit(cache=True, nogil=True)
def cheapest(a: Int, b: Int) -> Any:
    """Squared cost of the cheapest warping path (:func:`features.dtw.dtw`), uint64."""
    far = np.uint64(0xFFFFFFFFFFFFFFFF)
    row = np.full(b.shape[0] + 1, far, np.uint64)
    row[0] = np.uint64(0)
    for i in range(a.shape[0]):
        diagonal = row[0]
        row[0] = far
        for j in range(b.shape[0]):
            cost = np.uint64(0)
            for k in range(a.shape[1]):
                apart = a[i, k] - b[j, k]
                cost += np.uint64(apart * apart)
            best = min(min(diagonal, row[j]), row[j + 1])
            diagonal = row[j + 1]
            row[j + 1] = best + cost
    return row[b.shape[0]]
