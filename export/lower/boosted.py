"""Lowers gradient boosting to a Forest of Q16 margins.

The prior and the link move into the decision threshold. Models of several classes, or of real
values, become Trees that add to one score each.
"""

from __future__ import annotations

import math

import numpy as np

from export.fixed import Q16
from export.forms.forest import Forest
from export.forms.trees import Trees
from export.lower.margins import margin_threshold
from export.lower.prepare import NotLowerable, Prepared
from export.lower.sklearn_tree import sklearn_nodes
from export.lower.trees import added_scores


def lower(prepared: Prepared) -> Forest | Trees:
    """Lower ``GradientBoostingClassifier`` (logistic loss) and ``GradientBoostingRegressor``."""
    estimator = prepared.estimator
    if not prepared.binary:
        return _several(prepared)
    if type(estimator).__name__ != "GradientBoostingClassifier" or estimator.loss != "log_loss":
        raise NotLowerable("only GradientBoostingClassifier with loss='log_loss' has a form")
    zero = np.zeros((1, len(prepared.columns)), dtype=np.float32)
    prior = float(np.ravel(estimator._raw_predict_init(zero))[0])
    nodes = []
    for member in estimator.estimators_[:, 0]:
        margin = member.tree_.value[:, 0, 0] * estimator.learning_rate
        q16 = np.floor(margin * Q16 + 0.5).astype(np.int64)
        nodes.append(sklearn_nodes(prepared, member.tree_, q16))
    decision_threshold = min(max(margin_threshold(prepared) - prior, -1e9), 1e9)
    return Forest(
        prepared.features, prepared.labels, math.floor(decision_threshold * Q16), tuple(nodes)
    )


def _several(prepared: Prepared) -> Trees:
    estimator = prepared.estimator
    if not prepared.regressor and estimator.loss != "log_loss":
        raise NotLowerable("only GradientBoostingClassifier with loss='log_loss' has a form")
    if estimator.init not in (None, "zero"):
        raise NotLowerable("gradient boosting that starts from another model has no form")
    zero = np.zeros((1, len(prepared.columns)), dtype=np.float32)
    priors = np.ravel(estimator._raw_predict_init(zero))
    grown = estimator.estimators_
    trees = [member.tree_ for member in grown.ravel()]
    values = [tree.value[:, 0, 0] * estimator.learning_rate for tree in trees]
    outputs = list(range(grown.shape[1])) * grown.shape[0]
    return added_scores(prepared, trees, values, outputs, priors.tolist())
