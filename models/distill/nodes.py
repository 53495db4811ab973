"""Makes trees that are given by their nodes, not fitted to rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.distill.tree import replace_nodes

Node = int | tuple[str, float, Any, Any]
"""An action; or a column, the largest value that goes left, and what is left and right."""


def classifier(root: Node, names: list[str], actions: int) -> Any:
    """The classifier of such a tree; thresholds are whole numbers.

    Parameters
    ----------
    root : Node
    names : list of str
        All columns.
    actions : int
        How many there are, from 0 on.

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier
    """
    from sklearn.tree import DecisionTreeClassifier

    estimator = DecisionTreeClassifier(max_depth=1)
    estimator.fit(np.zeros((actions, len(names)), np.float32), range(actions))
    rows: list[tuple[int, int, int, float]] = []
    says: list[int] = []
    depth = _laid_out(root, names, rows, says, 0)
    nodes = np.zeros(len(rows), estimator.tree_.__getstate__()["nodes"].dtype)
    for at, (left, right, feature, threshold) in enumerate(rows):
        nodes[at]["left_child"], nodes[at]["right_child"] = left, right
        nodes[at]["feature"], nodes[at]["threshold"] = feature, threshold
    nodes["n_node_samples"] = nodes["weighted_n_node_samples"] = 1
    # Inner nodes say nothing, which is all actions alike.
    values = np.full((len(rows), 1, actions), 1 / actions)
    leaves = np.array(says) >= 0
    values[leaves, 0] = np.eye(actions)[np.array(says)[leaves]]
    replace_nodes(estimator, nodes, values, depth, len(names))
    return estimator


def _laid_out(
    node: Node,
    names: list[str],
    rows: list[tuple[int, int, int, float]],
    says: list[int],
    depth: int,
) -> int:
    """Append a node and all below it, the left one first; returns the depth reached."""
    at = len(rows)
    rows.append((-1, -1, -2, -2.0))
    says.append(node if isinstance(node, int) else -1)
    if isinstance(node, int):
        return depth
    name, bound, left, right = node
    left_depth = _laid_out(left, names, rows, says, depth + 1)
    place = len(rows)
    right_depth = _laid_out(right, names, rows, says, depth + 1)
    # Columns are whole numbers, so that half a number more separates as the bound itself does.
    rows[at] = (at + 1, place, names.index(name), float(np.floor(bound)) + 0.5)
    return max(left_depth, right_depth)
