"""Trees of scikit-learn, whatever estimator they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.forms.nodes import MAX_DEPTH, Nodes
from export.lower.prepare import NotLowerable, Prepared
from export.passes.tidy import tidy_nodes


def leaf_probability(tree: Any) -> NDArray[np.float64]:
    """Probability of the larger class in every node of a tree, float64 array [nodes]."""
    weight = tree.value[:, 0, :]
    return np.asarray(weight[:, 1] / weight.sum(axis=1))


def sklearn_nodes(
    prepared: Prepared, tree: Any, values: NDArray[np.int64], *, single: bool = True
) -> Nodes:
    """Nodes of a scikit-learn tree with integer thresholds and the given leaf values [nodes].

    ``single``: the tree sees its inputs rounded to float32, as scikit-learn's do.

    scikit-learn keeps a tree's nodes in preorder for depth-first growth but not for best-first
    (``max_leaf_nodes``), so they are ordered here.
    """
    if tree.max_depth > MAX_DEPTH:
        raise NotLowerable(f"a tree is {tree.max_depth} deep, {MAX_DEPTH} is the most")
    feature: list[int] = []
    value: list[int] = []
    right: list[int] = []
    waiting: list[tuple[int, int]] = [(0, -1)]
    while waiting:
        node, parent = waiting.pop()
        if parent >= 0:
            right[parent] = len(feature)
        right.append(0)
        if tree.children_left[node] < 0:
            feature.append(-1)
            value.append(int(values[node]))
            continue
        j = int(tree.feature[node])
        waiting.append((int(tree.children_right[node]), len(feature)))
        waiting.append((int(tree.children_left[node]), -1))
        feature.append(prepared.columns[j])
        value.append(prepared.last_left(j, float(tree.threshold[node]), single=single))
    return tidy_nodes(Nodes(tuple(feature), tuple(value), tuple(right)), prepared.features)
