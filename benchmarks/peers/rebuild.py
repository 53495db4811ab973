"""scikit-learn models from plain numbers, so that every peer gets the very same trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier


def forest(trees: list[dict[str, list]], columns: int) -> RandomForestClassifier:
    """A forest of given trees.

    Parameters
    ----------
    trees : list of dict
        ``left``, ``right`` (-1 in leaves), ``feature``, ``threshold``, ``p`` (probability of
        class 1) per node.
    columns : int
        Number of features.
    """
    made = RandomForestClassifier(len(trees), random_state=0)
    # Fitted once on next to nothing for everything that isn't in the nodes.
    made.fit(np.zeros((4, columns)), [0, 1, 0, 1])
    for member, tree in zip(made.estimators_, trees, strict=True):
        _replace(member, tree)
    return made


def _replace(member: DecisionTreeClassifier, tree: dict[str, list]) -> None:
    state: dict[str, Any] = member.tree_.__getstate__()
    n = len(tree["left"])
    nodes = np.zeros(n, dtype=state["nodes"].dtype)
    inner = np.array(tree["left"]) >= 0
    nodes["left_child"] = tree["left"]
    nodes["right_child"] = tree["right"]
    nodes["feature"] = np.where(inner, tree["feature"], -2)
    nodes["threshold"] = np.where(inner, tree["threshold"], -2.0)
    nodes["n_node_samples"] = 1
    nodes["weighted_n_node_samples"] = 1.0
    p = np.array(tree["p"])
    depth = np.zeros(n, dtype=np.int64)
    for i in np.flatnonzero(inner):  # parents come before their children
        depth[tree["left"][i]] = depth[tree["right"][i]] = depth[i] + 1
    values = np.stack([1 - p, p], axis=1)[:, None, :]
    # An empty tree takes the state: one that has nodes doesn't grow for it.
    kind, arguments, _ = member.tree_.__reduce__()
    member.tree_ = kind(*arguments)
    member.tree_.__setstate__(
        {**state, "nodes": nodes, "values": values, "node_count": n, "max_depth": int(depth.max())}
    )
