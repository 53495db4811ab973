"""SVC -> Linear where its kernel is linear."""

from __future__ import annotations

import numpy as np

from export.forms.linear import Linear
from export.lower.linear import decision_cut, folded
from export.lower.prepare import NotLowerable, Prepared


def lower(prepared: Prepared) -> Linear:
    """Lower a linear ``SVC``."""
    estimator = prepared.estimator
    if estimator.kernel != "linear":
        raise NotLowerable(f"SVC with kernel {estimator.kernel!r} has no integer form")
    inputs = np.asarray(estimator.coef_, dtype=np.float64)[0]
    bias = float(np.ravel(estimator.intercept_)[0])
    return folded(prepared, inputs, bias, decision_cut(prepared))
