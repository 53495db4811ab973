"""Lowers an SVC to Linear or Rbf, depending on its kernel."""

from __future__ import annotations

import numpy as np

from export.forms.linear import Linear
from export.forms.rbf import Rbf
from export.lower.linear import folded
from export.lower.margins import margin_threshold
from export.lower.prepare import NotLowerable, Prepared
from export.lower.rbf import gaussian


def lower(prepared: Prepared) -> Linear | Rbf:
    """Lower a linear or Gaussian ``SVC``."""
    estimator = prepared.estimator
    if estimator.kernel not in {"linear", "rbf"}:
        raise NotLowerable(f"SVC with kernel {estimator.kernel!r} has no integer form")
    if getattr(estimator, "probability", False) is True:
        # Its probabilities come from a cross-validation of their own and may contradict predict().
        raise NotLowerable("SVC(probability=True): use CalibratedClassifierCV(ensemble=False)")
    decision_threshold = margin_threshold(prepared)
    bias = float(np.ravel(estimator.intercept_)[0])
    if estimator.kernel == "rbf":
        return gaussian(prepared, bias, decision_threshold)
    inputs = np.asarray(estimator.coef_, dtype=np.float64)[0]
    return folded(prepared, inputs, bias, decision_threshold)
