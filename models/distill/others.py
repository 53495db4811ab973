"""Students of other families, taught by the same rows, for what a single tree gives away."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROWS = 60_000
"""Rows at most that a family learns from, spread evenly: more don't fit a network in a minute."""
TREES, DEPTH = 10, 10
BOOSTED_ROUNDS = 20
HIDDEN = (16, 16)
TABLE_FEATURES, TABLE_BINS = 3, 16
"""A table of 16 x 16 x 16 bytes; a fourth feature would make it 64 KiB."""


class Acting(Protocol):
    """Whoever decides by what a tree sees."""

    def act(self, seen: Ints) -> Ints:
        """Actions of rows [n, F], int64 array [n]."""
        ...


@dataclass(frozen=True)
class Other:
    """A fitted student.

    Attributes
    ----------
    decide : callable
        Rows [n, F] -> actions [n].
    size : str
        What it is made of, in words.
    """

    decide: Callable[[Ints], Any]
    size: str

    def act(self, seen: Ints) -> Ints:
        """Actions of rows [n, F], int64 array [n]."""
        return np.asarray(self.decide(seen), np.int64)


def forest(seen: Ints, wanted: Ints, weights: Floats, seed: int) -> Other:
    """Random forest; its trees vote with the shares of actions in their leaves."""
    from sklearn.ensemble import RandomForestClassifier

    made = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=seed)
    made.fit(seen, wanted, sample_weight=weights)
    leaves = sum(tree.tree_.n_leaves for tree in made.estimators_)
    return Other(made.predict, f"{TREES} trees, {leaves} leaves")


def boosted(seen: Ints, wanted: Ints, weights: Floats, seed: int) -> Other:
    """Boosted trees, one for each action and round."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    made = HistGradientBoostingClassifier(
        max_iter=BOOSTED_ROUNDS, max_leaf_nodes=31, early_stopping=False, random_state=seed
    ).fit(seen, wanted, sample_weight=weights)
    trees = [tree for one in made._predictors for tree in one]
    leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
    return Other(made.predict, f"{len(trees)} trees, {leaves} leaves")


def network(seen: Ints, wanted: Ints, weights: Floats, seed: int) -> Other:
    """A network of two small layers, on rows that are drawn by their weight."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer

    drawn = np.random.default_rng(seed).choice(len(seen), len(seen), p=weights / weights.sum())
    made = make_pipeline(
        QuantileTransformer(n_quantiles=256, random_state=seed),
        MLPClassifier(HIDDEN, max_iter=100, learning_rate_init=5e-3, random_state=seed),
    )
    with warnings.catch_warnings():
        # A hundred rounds over the rows are all that it gets, whether or not it has come to rest.
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(seen[drawn], wanted[drawn])
    count = sum(one.size for one in made[-1].coefs_ + made[-1].intercepts_)
    return Other(made.predict, f"{count} weights")


def table(seen: Ints, wanted: Ints, weights: Floats, seed: int) -> Other:
    """Look-up table over those features that a small tree finds most useful, in even shares."""
    from sklearn.tree import DecisionTreeClassifier

    scout = DecisionTreeClassifier(max_leaf_nodes=64, random_state=seed)
    scout.fit(seen, wanted, sample_weight=weights)
    columns = np.argsort(-scout.feature_importances_, kind="stable")[:TABLE_FEATURES]
    shares = np.linspace(0, 1, TABLE_BINS + 1)[1:-1]
    edges = [np.unique(np.quantile(seen[:, column], shares)) for column in columns]
    actions = int(wanted.max()) + 1

    def place(rows: Ints) -> Any:
        found = np.zeros(len(rows), np.int64)
        for column, cuts in zip(columns, edges, strict=True):
            found = found * TABLE_BINS + np.searchsorted(cuts, rows[:, column], side="left")
        return found

    votes = np.zeros((TABLE_BINS**TABLE_FEATURES, actions))
    np.add.at(votes, (place(seen), wanted), weights)
    # A cell that no row was in does as most rows do.
    votes[votes.sum(axis=1) == 0] = np.bincount(wanted, weights, actions)
    says = votes.argmax(axis=1)
    return Other(lambda rows: says[place(rows)], f"{len(says)} cells")


OTHERS: dict[str, Callable[[Ints, Ints, Floats, int], Other]] = {
    "random forest": forest,
    "boosted trees": boosted,
    "network of 16 and 16": network,
    "look-up table": table,
}
"""Name of a family -> what fits one; a new one is one line."""


def fit(name: str, seen: Ints, wanted: Ints, weights: Floats, seed: int) -> Other:
    """Fit a family on at most `ROWS` rows.

    Parameters
    ----------
    name : str
        A key of `OTHERS`.
    seen : int64 array [n, F]
    wanted : int64 array [n]
        The teacher's actions.
    weights : float64 array [n]
        By how much a wrong one may cost.
    seed : int
    """
    kept = np.unique(np.linspace(0, len(seen) - 1, ROWS).astype(np.int64))
    return OTHERS[name](seen[kept], wanted[kept], weights[kept], seed)
