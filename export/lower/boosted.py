"""Gradient boosting -> Forest of Q16 margins; the prior and the link move into the cut."""

from __future__ import annotations

import math

import numpy as np

from export.fixed import Q16
from export.forms.forest import Forest
from export.lower.linear import decision_cut
from export.lower.prepare import NotLowerable, Prepared
from export.lower.tree import sklearn_nodes


def lower(prepared: Prepared) -> Forest:
    """Lower ``GradientBoostingClassifier`` (logistic loss)."""
    estimator = prepared.estimator
    if type(estimator).__name__ != "GradientBoostingClassifier" or estimator.loss != "log_loss":
        raise NotLowerable("only GradientBoostingClassifier with loss='log_loss' has a form")
    zero = np.zeros((1, len(prepared.columns)), dtype=np.float32)
    prior = float(np.ravel(estimator._raw_predict_init(zero))[0])
    nodes = []
    for member in estimator.estimators_[:, 0]:
        margin = member.tree_.value[:, 0, 0] * estimator.learning_rate
        q16 = np.floor(margin * Q16 + 0.5).astype(np.int64)
        nodes.append(sklearn_nodes(prepared, member.tree_, q16))
    cut = min(max(decision_cut(prepared) - prior, -1e9), 1e9)
    return Forest(prepared.features, prepared.labels, math.floor(cut * Q16), tuple(nodes))
