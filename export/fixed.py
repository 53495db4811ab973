"""Converts between the floating-point features of training and the integers of exported code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from features import grid
from features.spec import Feature

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
Q16 = 1 << 16
"""One, as exported code writes a probability."""


def limits(features: Sequence[Feature]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Smallest and largest integer of each feature.

    Parameters
    ----------
    features : sequence of Feature
        ``d`` features.

    Returns
    -------
    low, high : int64 arrays [d]
        In scaled units (``unit / scale``).

    Raises
    ------
    UserError
        When a range is empty or leaves 32 bits, which no kernel target could carry.
    """
    low = np.array([np.floor(f.low * f.scale + 0.5) for f in features], dtype=np.float64)
    high = np.array([np.floor(f.high * f.scale + 0.5) for f in features], dtype=np.float64)
    for feature, least, most in zip(features, low, high, strict=True):
        if not (INT32_MIN < least < most < INT32_MAX):
            raise UserError(
                f"feature {feature.name!r}: the range {feature.low}..{feature.high} "
                f"{feature.unit} at scale {feature.scale} isn't a 32-bit range: "
                "lower its scale or its range in the feature's spec"
            )
    return low.astype(np.int64), high.astype(np.int64)


def to_integers(values: NDArray[np.floating], features: Sequence[Feature]) -> NDArray[np.int64]:
    """Scale, round half up and clip, as :class:`features.spec.Feature` says.

    Parameters
    ----------
    values : float64 array [N, d]
        Observations in the features' own units.
    features : sequence of Feature
        ``d`` features.

    Returns
    -------
    int64 array [N, d]
        ``clip(floor(value * scale + 0.5), low, high)``.

    Raises
    ------
    UserError
        When a value is NaN: no integer stands for it.
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        raise UserError(
            f"row {row}: feature {features[column].name!r} is NaN, which has no integer: "
            "drop the row or fill it before"
        )
    low, high = limits(features)
    return np.clip(grid.integers(values, features), low, high)


def to_values(integers: NDArray[np.int64], features: Sequence[Feature]) -> NDArray[np.float64]:
    """The value that each integer stands for, in the features' own units, float64 array [N, d]."""
    return grid.values_of(integers, features)
