"""A student: one tree from what it sees of an observation to an action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Student:
    """A fitted tree.

    Attributes
    ----------
    estimator : sklearn.tree.DecisionTreeClassifier
        Of all columns; each leaf says one action with certainty.
    view : str
        What it was allowed to see.
    round : int
        After which it was fitted.
    """

    estimator: Any
    view: str
    round: int

    @property
    def leaves(self) -> int:
        """Leaves."""
        return int(self.estimator.tree_.n_leaves)

    @property
    def depth(self) -> int:
        """Comparisons on the longest path."""
        return int(self.estimator.tree_.max_depth)

    def act(self, seen: Ints) -> Ints:
        """Actions of rows [n, F], int64 array [n]."""
        tree = self.estimator.tree_
        chosen = tree.value[tree.apply(seen.astype(np.float32)), 0].argmax(axis=1)
        return np.asarray(self.estimator.classes_[chosen], np.int64)


def fitted(
    seen: Ints,
    wanted: Ints,
    weights: NDArray[np.float64] | None,
    columns: NDArray[np.int64],
    *,
    depth: int,
    leaves: int,
    least: int,
    actions: int,
    seed: int,
) -> Any:
    """A tree that is grown leaf by leaf, the most useful first, so that smaller ones are in it.

    Parameters
    ----------
    seen : int64 array [n, F]
    wanted : int64 array [n]
        Actions.
    weights : float64 array [n], optional
    columns : int64 array
        Columns that it may look at.
    depth, leaves, least
        Bounds: comparisons, leaves, and rows of a leaf.
    actions : int
        How many actions there are, wanted or not.
    seed : int

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier
        Of all F columns and all actions; leaves that say the same side by side are one.
    """
    from sklearn.tree import DecisionTreeClassifier

    estimator = DecisionTreeClassifier(
        max_depth=depth, max_leaf_nodes=leaves, min_samples_leaf=least, random_state=seed
    )
    # Every action has a row without weight, so that classes are numbered as actions are.
    rows = np.concatenate([seen[:1]] * actions + [seen])[:, columns].astype(np.float32)
    classes = np.concatenate([np.arange(actions), wanted])
    plain = np.ones(len(wanted)) if weights is None else weights
    estimator.fit(rows, classes, np.concatenate([np.zeros(actions), plain]))
    return certain(estimator, columns, seen.shape[1])


def replace_nodes(
    estimator: Any, nodes: NDArray[Any], values: NDArray[np.float64], depth: int, width: int
) -> None:
    """Give a classifier other nodes; scikit-learn has no other way to write a tree down.

    Parameters
    ----------
    estimator : sklearn.tree.DecisionTreeClassifier
        Fitted; its classes stay.
    nodes : structured array [N]
        As scikit-learn's own tree has them.
    values : float64 array [N, 1, C]
        Share of each class.
    depth : int
        Of the deepest leaf.
    width : int
        How many columns there are.
    """
    from sklearn.tree._tree import Tree

    tree = Tree(width, np.array([len(estimator.classes_)], np.intp), 1)
    tree.__setstate__(
        {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    )
    estimator.tree_ = tree


def certain(estimator: Any, columns: NDArray[np.int64], width: int) -> Any:
    """The same tree over all columns, in which leaves say one action and like ones are joined.

    Parameters
    ----------
    estimator : sklearn.tree.DecisionTreeClassifier
        Of the columns alone; its ``tree_`` is replaced.
    columns : int64 array
        Which columns these are.
    width : int
        How many there are.
    """
    state = estimator.tree_.__getstate__()
    nodes, best = state["nodes"], state["values"][:, 0].argmax(axis=1)
    left, right = nodes["left_child"], nodes["right_child"]
    # Children stand behind their parents, so from the end on each knows what its children say.
    says = np.full(len(nodes), -1)
    for node in reversed(range(len(nodes))):
        if left[node] < 0:
            says[node] = best[node]
        elif says[left[node]] == says[right[node]] >= 0:
            says[node] = says[left[node]]
    kept: list[int] = []
    place: dict[int, int] = {}
    waiting = [0]
    while waiting:
        node = waiting.pop()
        place[node] = len(kept)
        kept.append(node)
        if says[node] < 0:
            waiting += [int(right[node]), int(left[node])]
    made = nodes[kept].copy()
    values = np.zeros((len(kept), 1, state["values"].shape[2]))
    depths = np.zeros(len(kept), np.int64)
    for at, node in enumerate(kept):
        if says[node] >= 0:
            made["left_child"][at] = made["right_child"][at] = -1
            made["feature"][at], made["threshold"][at] = -2, -2.0
            values[at, 0, says[node]] = 1.0
            continue
        one, other = place[int(left[node])], place[int(right[node])]
        made["left_child"][at], made["right_child"][at] = one, other
        made["feature"][at] = columns[nodes["feature"][node]]
        values[at] = state["values"][node]
        depths[[one, other]] = depths[at] + 1
    replace_nodes(estimator, made, values, int(depths.max()), width)
    estimator.n_features_in_ = width
    return estimator
