"""Trees whose splits are chosen by what actions are worth, not only by which is the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.distill.tree import certain, replace_nodes

Ints = NDArray[np.int64]


def by_scores(
    seen: Ints,
    wanted: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    columns: NDArray[np.int64],
    *,
    depth: int,
    leaves: int,
    least: int,
    actions: int,
    seed: int,
) -> Any:
    """A tree by the squared error of scores; a leaf says the action that is worth most there.

    A row whose actions are worth nearly the same pulls at no split, and a leaf whose rows want
    unlike actions takes the one that costs all of them least together.

    Parameters
    ----------
    seen : int64 array [n, F]
    wanted : float64 array [n, C]
        Scores; what rows have in common for all actions doesn't count.
    weights : float64 array [n], optional
    columns, depth, leaves, least, actions, seed
        As `models.distill.tree.fitted`.

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier
        As `models.distill.tree.fitted`.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rows = seen[:, columns].astype(np.float32)
    worth = wanted - wanted.mean(axis=1, keepdims=True)
    regressor = DecisionTreeRegressor(
        max_depth=depth, max_leaf_nodes=leaves, min_samples_leaf=least, random_state=seed
    ).fit(rows, worth, sample_weight=weights)
    # The same nodes as a classifier has them: a row of values for each, one for each action.
    estimator = DecisionTreeClassifier(max_depth=1).fit(rows[:1].repeat(actions, 0), range(actions))
    state = regressor.tree_.__getstate__()
    values = np.ascontiguousarray(state["values"].transpose(0, 2, 1))
    replace_nodes(estimator, state["nodes"], values, state["max_depth"], len(columns))
    return certain(estimator, columns, seen.shape[1])
