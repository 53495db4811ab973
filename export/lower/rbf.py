"""Lowers Gaussian support vectors to Rbf, with scaling and gamma folded into the coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from export.exp_table import ONE_BITS, exp2_table
from export.fixed import INT32_MAX
from export.forms.rbf import LIMIT, MAX_INPUTS, MAX_VECTORS, Input, Rbf
from export.ir import Ints
from export.lower.prepare import Floats, NotLowerable, Prepared

MOST_PLACES = 23
"""Fractional bits of a coordinate. A machine with C = 1000 is a small difference of large sums: of
6960 verdicts on its training table 178 turn with 14 bits, 4 with 20, none with 23."""
LEAST_PLACES = 16
TABLE_BITS = 10
"""With 8 (error 9e-7) 10 of 8899 verdicts turn, with 10 (5.8e-8, 4 KiB) none, and with 12 the
scores come no nearer."""
REACH = math.sqrt(ONE_BITS + 1)
"""Distance in coordinates beyond which a kernel is 0."""


def gaussian(prepared: Prepared, bias: float, decision_threshold: float) -> Rbf:
    """Lower an ``SVC`` with kernel ``rbf``.

    Parameters
    ----------
    prepared : Prepared
    bias, decision_threshold : float
        Of the decision value, which includes the bias.

    Raises
    ------
    NotLowerable
        When the support vectors' coordinates don't fit the form's numbers.
    """
    estimator = prepared.estimator
    factor = math.sqrt(float(estimator._gamma) * math.log2(math.e))
    vectors = _dense(estimator.support_vectors_) * factor
    weights = _dense(estimator.dual_coef_)[0]
    if vectors.shape[1] > MAX_INPUTS or not 1 <= len(vectors) <= MAX_VECTORS:
        raise NotLowerable(
            f"{len(vectors)} support vectors of {vectors.shape[1]} inputs: at most {MAX_VECTORS} "
            f"of {MAX_INPUTS} fit"
        )
    # Clipping then only meets observations that every kernel is 0 for.
    center = (vectors.max(axis=0) + vectors.min(axis=0)) / 2
    widest = float(np.abs(vectors - center).max()) + REACH + 1
    places = min(MOST_PLACES, math.floor(math.log2(LIMIT / widest)))
    if places < LEAST_PLACES:
        raise NotLowerable("support vectors too far apart for integers: use a smaller gamma")
    unit = 2.0**places
    a, b = prepared.affine()
    inputs = tuple(
        _input(column, slope, offset)
        for column, slope, offset in zip(
            prepared.columns, a * factor * unit, (b * factor - center) * unit, strict=True
        )
    )
    points = np.floor((vectors - center) * unit + 0.5).astype(np.int64)
    points, weights = _merged(points, weights)
    whole, shift = integer_weights(weights, bias)
    bound = 2.0**62
    return Rbf(
        prepared.features,
        prepared.labels,
        math.floor(min(max(decision_threshold * 2.0**shift, -bound), bound)),
        inputs,
        places,
        exp2_table(TABLE_BITS),
        tuple(tuple(map(int, row)) for row in points),
        tuple(map(int, whole)),
        math.floor(min(max(bias * 2.0**shift, -bound), bound) + 0.5),
        shift,
    )


def _input(column: int, slope: float, offset: float) -> Input:
    """As many fractional bits as 32-bit features allow."""
    room = min(2.0**30 / max(abs(slope), 1e-300), 2.0**60 / max(abs(offset), 1.0))
    shift = min(34, math.floor(math.log2(room)))
    if shift < 0:
        raise NotLowerable("a feature's steps are too far apart: give it a larger scale")
    unit = 2.0**shift
    # Half a unit more, since the form rounds down.
    return Input(
        column, math.floor(slope * unit + 0.5), math.floor((offset + 0.5) * unit + 0.5), shift
    )


def _merged(points: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Vectors that are equal as integers become one."""
    distinct, where = np.unique(points, axis=0, return_inverse=True)
    summed = np.zeros(len(distinct))
    np.add.at(summed, np.ravel(where), weights)
    return distinct, summed


def integer_weights(weights: Floats, bias: float) -> tuple[Ints, int]:
    """Float64 weights as integers, and the fractional bits that their sum of kernels has.

    As many as 32 bits for each weight and 64 for the sum allow.
    """
    total = max(float(np.abs(weights).sum()), abs(bias), 1e-300)
    largest = max(float(np.abs(weights).max()), 1e-300)
    room = min(2.0 ** (61 - ONE_BITS) / total, (INT32_MAX - 1) / largest)
    places = max(0, min(math.floor(math.log2(room)), 62 - ONE_BITS))
    return np.floor(weights * 2.0**places + 0.5).astype(np.int64), places + ONE_BITS


def _dense(matrix: Any) -> Floats:
    """Support vectors and coefficients of a machine trained on sparse rows are sparse too."""
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return np.asarray(dense, dtype=np.float64)
