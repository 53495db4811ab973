"""How many digits of a number are kept with a model: those that mean something, on any machine.

Two machines sum in another order and so differ in the last digits of a float; what is kept in an
entry must not. Features are kept as their fixed-point values (`features.grid`), everything else is
rounded here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from features.grid import on_grid
from features.spec import Feature
from models.sbd.windows import Windows

PROBABILITY = 6
"""Decimals of a stored answer: ONNX computes in float32, which errs by some 1e-7."""
SIGNIFICANT = 7
"""Digits of a stored real score, of whatever size: as many as float32 holds."""
CALIBRATION = 4
"""Decimals of slope and offset: with 2,000 connections their standard error is above 0.01."""
FIGURE = 6
"""Decimals of accuracies and intervals: one window of 10,000 is 1e-4."""
LEAST_ERROR = 1e-6
"""An error of float32 that is smaller isn't told from none."""


def rounded(value: Any, digits: int = FIGURE) -> Any:
    """The same with every float in it rounded; mappings and lists are gone through."""
    if isinstance(value, Mapping):
        return {key: rounded(one, digits) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one, digits) for one in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), digits) + 0.0  # -0.0 and 0.0 are one number
    return value


def bound(error: float) -> float:
    """The next of 1, 2, 5, 10 ... above an error: even its first digit is the machine's."""
    if not error > LEAST_ERROR:
        return LEAST_ERROR
    power = math.floor(math.log10(error))
    return next(b for step in (1, 2, 5, 10) if (b := float(f"{step}e{power}")) >= error)


def probabilities(p: NDArray[np.floating]) -> NDArray[np.float64]:
    """Answers as they are stored, float64 [n]."""
    return np.asarray(np.round(np.asarray(p, dtype=np.float64), PROBABILITY), dtype=np.float64)


def significant(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Real scores as they are stored, float64 of the same shape."""
    given = np.asarray(scores, dtype=np.float64)
    kept = [float(f"{score:.{SIGNIFICANT}g}") + 0.0 for score in given.ravel().tolist()]
    return np.array(kept, dtype=np.float64).reshape(given.shape)


def stored(table: Windows, features: Sequence[Feature]) -> Windows:
    """Rows with these features as their fixed-point values."""
    names = [feature.name for feature in features]
    values = on_grid(table.matrix(names), features)
    columns = [pl.Series(name, values[:, i]) for i, name in enumerate(names)]
    return Windows(table.frame.with_columns(columns), table.group, table.y)
