"""Lowers LightGBM, XGBoost and trees given as arrays to Forest, or to Trees of several scores."""

from __future__ import annotations

import math

import numpy as np

from export.fixed import Q16
from export.forms.forest import Forest
from export.forms.nodes import MAX_NODES
from export.forms.trees import Trees
from export.lower.margins import margin_threshold
from export.lower.prepare import NotLowerable, Prepared
from export.lower.sklearn_tree import sklearn_nodes
from export.lower.trees import added_scores
from models import trees


def lower(prepared: Prepared) -> Forest | Trees:
    """Lower LightGBM's and XGBoost's classifiers and regressors, and ``TreeEnsemble``.

    Every comparison turns on the integer where the library's own does (LightGBM compares doubles,
    XGBoost floats). Leaves are rounded, of two classes to Q16, and their prior moves into the
    decision threshold.
    """
    if not prepared.binary:
        found = as_added(prepared)
        values = [tree.value for tree in found.trees]
        return added_scores(
            prepared, found.trees, values, found.outputs, found.priors, single=found.single
        )
    ensemble = as_ensemble(prepared)
    nodes = []
    for tree in ensemble.trees:
        q16 = np.floor(tree.value * Q16 + 0.5).astype(np.int64)
        nodes.append(sklearn_nodes(prepared, tree, q16, single=ensemble.single))
    total = sum(map(len, nodes))
    if total > MAX_NODES:
        raise NotLowerable(f"its trees have {total} nodes together, {MAX_NODES} is the most")
    if ensemble.link == trees.MEAN:
        decision_threshold = prepared.threshold
        if prepared.calibrator is not None:
            decision_threshold = prepared.output_threshold(0.0, 1.0)
        sum_threshold = math.floor(min(max(decision_threshold, -1.0), 2.0) * Q16 * len(nodes) + 0.5)
    else:
        decision_threshold = min(max(margin_threshold(prepared) - ensemble.prior, -1e9), 1e9)
        sum_threshold = math.floor(decision_threshold * Q16)
    return Forest(prepared.features, prepared.labels, sum_threshold, tuple(nodes))


def as_ensemble(prepared: Prepared) -> trees.TreeEnsemble:
    """The estimator's trees as arrays."""
    try:
        return trees.of(prepared.estimator)
    except trees.OtherTrees as error:
        raise NotLowerable(str(error)) from None


def as_added(prepared: Prepared) -> trees.AddedTrees:
    """The estimator's trees as arrays, each adding to one score."""
    try:
        return trees.added(prepared.estimator)
    except trees.OtherTrees as error:
        raise NotLowerable(str(error)) from None
