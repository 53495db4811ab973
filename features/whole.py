"""Observations in units whose ranges fit 32 bits: what exported code and files take as inputs.

The features of agents are in the papers' units. A rate in bit/s leaves 32 bits beyond 2.1 Gbit/s,
so exported forms take it in kbit/s; everything else is the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from features.spec import Feature

WIDEST = 2.0**31 - 1
"""Above it a value has no 32-bit integer."""


def whole(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """The same features in units whose ranges fit 32 bits."""
    return tuple(_fitting(feature) for feature in features)


def divisors(features: Sequence[Feature]) -> NDArray[np.float64]:
    """By what each value is divided to be in the unit of `whole`; float64 array [d]."""
    return np.array([1.0 if _fits(feature) else 1000.0 for feature in features])


def _fits(feature: Feature) -> bool:
    return feature.high * feature.scale < WIDEST


def _fitting(feature: Feature) -> Feature:
    if _fits(feature):
        return feature
    if not feature.name.endswith("_bps"):
        raise ValueError(f"{feature.name}: its range leaves 32 bits, and it is no rate in bit/s")
    return replace(
        feature,
        name=feature.name.removesuffix("bps") + "kbps",
        unit="kbit/s",
        low=feature.low / 1000,
        high=feature.high / 1000,
    )
