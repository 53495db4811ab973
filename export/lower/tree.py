"""Lowers a scikit-learn decision tree to Tree, exact on every integer."""

from __future__ import annotations

from export.forms.tree import Tree
from export.forms.trees import Trees
from export.lower.prepare import Prepared, in_q16
from export.lower.sklearn_tree import leaf_probability, sklearn_nodes


def lower(prepared: Prepared) -> Tree | Trees:
    """Lower a ``DecisionTreeClassifier`` or ``DecisionTreeRegressor``.

    Calibration of two classes moves into the leaves.
    """
    if not prepared.binary:
        from export.lower.trees import several_scores

        return several_scores(prepared, [prepared.estimator.tree_])
    tree = prepared.estimator.tree_
    probability = prepared.calibrated(leaf_probability(tree))
    q16, decision_threshold = in_q16(probability, prepared.threshold)
    return Tree(
        prepared.features, prepared.labels, decision_threshold, sklearn_nodes(prepared, tree, q16)
    )
