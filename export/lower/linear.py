"""Lowers linear models to Linear, with scaling folded into the integer weights.

Models of several classes, or of real values, become a network of one layer.
"""

from __future__ import annotations

import math

import numpy as np

from export.forms.linear import Linear
from export.forms.mlp import Mlp
from export.lower.margins import margin_threshold
from export.lower.prepare import Prepared


def lower(prepared: Prepared) -> Linear | Mlp:
    """Lower ``LogisticRegression``, ``LinearSVC``, ``SGDClassifier`` and linear regressions."""
    estimator = prepared.estimator
    if not prepared.binary:
        from export.lower.dense import FloatLayer
        from export.lower.mlp import scaled_mlp

        weights = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
        biases = np.zeros(len(weights)) + np.ravel(estimator.intercept_)
        return scaled_mlp(prepared, [FloatLayer(weights, biases, "identity")], 0.0)
    inputs = np.asarray(estimator.coef_, dtype=np.float64)[0]
    bias = float(np.asarray(estimator.intercept_).ravel()[0])
    return folded(prepared, inputs, bias, margin_threshold(prepared))


def folded(
    prepared: Prepared, inputs: np.ndarray, bias: float, decision_threshold: float
) -> Linear:
    """Integer weights of a linear function of the estimator's inputs.

    As many fractional bits as the sum allows: with ``sum|w| < 2**31`` no 32-bit observation
    takes it beyond 62 bits.
    """
    a, b = prepared.affine()
    weights = np.zeros(len(prepared.features))
    np.add.at(weights, list(prepared.columns), inputs * a)
    bias += float(inputs @ b)
    largest = max(float(np.abs(weights).sum()), abs(bias) / 2**30, 1e-300)
    shift = max(0, min(56, math.floor(math.log2(2.0**30 / largest))))
    unit = 2.0**shift
    bound = 2.0**62
    return Linear(
        prepared.features,
        prepared.labels,
        math.floor(min(max(decision_threshold * unit, -bound), bound)),
        tuple(int(w) for w in np.floor(weights * unit + 0.5)),
        math.floor(bias * unit + 0.5),
        shift,
    )
