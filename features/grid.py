"""Features as the fixed-point numbers that exported code sees: the same on every machine.

The floating-point value of a feature may differ in its last digits between machines (sums in
another order, fused multiplications); the integer nearest to ``value * scale`` doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from features.spec import Feature

NONE = np.iinfo(np.int64).min
"""Stands for a value that is no number."""
FARTHEST = 2.0**62


def integers(values: NDArray[np.floating], features: Sequence[Feature]) -> NDArray[np.int64]:
    """The nearest multiples of each feature's ``1 / scale``.

    Parameters
    ----------
    values : float array [n, d]
        Observations in the features' own units.
    features : sequence of Feature
        ``d`` features.

    Returns
    -------
    int64 array [n, d]
        ``floor(value * scale + 0.5)``; `NONE` for NaN. Infinities are cut off at 2^62.
    """
    values = np.asarray(values, dtype=np.float64)
    scaled = np.floor(values * _scales(features) + 0.5)
    cut = np.clip(np.nan_to_num(scaled, nan=0.0), -FARTHEST, FARTHEST)
    return np.where(np.isnan(values), NONE, cut.astype(np.int64)).astype(np.int64)


def on_grid(values: NDArray[np.floating], features: Sequence[Feature]) -> NDArray[np.float64]:
    """The values that those integers stand for, float64 array [n, d]; what isn't finite stays."""
    values = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(values), values_of(integers(values, features), features), values)


def values_of(integers: NDArray[np.int64], features: Sequence[Feature]) -> NDArray[np.float64]:
    """The value that each integer stands for, in the features' own units, float64 array [n, d]."""
    return np.asarray(integers, dtype=np.float64) / _scales(features)


def _scales(features: Sequence[Feature]) -> NDArray[np.float64]:
    return np.array([feature.scale for feature in features], dtype=np.float64)
