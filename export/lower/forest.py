"""Lowers a scikit-learn forest to Forest: the mean of probabilities becomes a sum of Q16 ones."""

from __future__ import annotations

import math

import numpy as np

from export.fixed import Q16
from export.forms.forest import Forest
from export.forms.trees import Trees
from export.lower.prepare import Prepared
from export.lower.sklearn_tree import leaf_probability, sklearn_nodes
from export.lower.trees import several_scores


def lower(prepared: Prepared) -> Forest | Trees:
    """Lower random forests and extremely randomised trees, classifiers and regressors.

    A calibrated forest keeps its own scores; calibration moves into the decision threshold.
    """
    if not prepared.binary:
        return several_scores(prepared, [m.tree_ for m in prepared.estimator.estimators_])
    trees = [member.tree_ for member in prepared.estimator.estimators_]
    nodes = tuple(
        sklearn_nodes(prepared, t, np.floor(leaf_probability(t) * Q16 + 0.5).astype(np.int64))
        for t in trees
    )
    decision_threshold = (
        prepared.threshold if prepared.calibrator is None else prepared.output_threshold(0.0, 1.0)
    )
    decision_threshold = min(max(decision_threshold, -1.0), 2.0)
    sum_threshold = math.floor(decision_threshold * Q16 * len(trees) + 0.5)
    return Forest(prepared.features, prepared.labels, sum_threshold, nodes)
