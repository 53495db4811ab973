"""A group's own model is compared with the pooled one, on connections that neither has seen.

Connections are dealt into folds by their names alone, so that whatever table they stand in they
fall into the same one: the pooled model of a fold has never learned from a connection that a
group's own model is tested on in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.sbd.accumulate import last_of_each
from models.sbd.params import THRESHOLD, Groups, Params
from models.sbd.train.classifiers import CLASSIFIERS, Estimator, make, probability
from models.sbd.windows import Windows
from models.stats.intervals import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Settings of the pooled model and every group's own, which differ only in their rows.

    Attributes
    ----------
    classifier : str
        Key of `models.sbd.train.classifiers.CLASSIFIERS`.
    features : tuple of str
        Columns, in the models' order.
    grid : tuple of mappings
        Settings that the choice is made from, the most regularised first.
    groups : Groups
        Folds, repeats and minimum sizes.
    seed : int
        Seed of models, inner folds and bootstrap.
    confidence, resamples
        Settings of the bootstrap.
    """

    classifier: str
    features: tuple[str, ...]
    grid: tuple[Mapping[str, Any], ...]
    groups: Groups
    seed: int
    confidence: float
    resamples: int

    @property
    def rounds(self) -> list[tuple[int, int]]:
        """All (repeat, fold)."""
        return list(product(range(self.groups.repeats), range(self.groups.folds)))


def grid(classifier: str, params: Params) -> tuple[dict[str, Any], ...]:
    """Settings to choose from: evenly thinned values of the classifier's space (Table 4).

    Depths stay within what the kernel is given (``zoo_depth``); leaves and numbers of trees are
    those of the zoo.
    """
    settings: list[dict[str, Any]] = [{}]
    for key, values in CLASSIFIERS[classifier].space.items():
        allowed = [v for v in values if key != "depth" or v <= params.zoo_depth]
        at = np.unique(np.linspace(0, len(allowed) - 1, params.groups.grid).round().astype(int))
        settings = [{**one, key: allowed[i]} for one in settings for i in at]
    fixed: dict[str, Any] = {
        "decision-tree": {"leaf": params.zoo_leaf},
        "random-forest": {"trees": params.zoo_trees},
        "svm-linear": {"max_iterations": params.search.max_iterations},
        "svm-rbf": {"max_iterations": params.search.max_iterations},
    }.get(classifier, {})
    return tuple({**fixed, **one} for one in settings)


def places(names: Sequence[str] | NDArray[np.str_], salt: str) -> Floats:
    """A number in [0, 1) per name, float64 array [N], from the SHA-256 of salt and name."""
    distinct, at = np.unique(np.asarray(names, dtype=np.str_), return_inverse=True)
    digests = (hashlib.sha256(f"{salt}/{name}".encode()).digest() for name in distinct)
    return np.array([int.from_bytes(d[:6], "big") / 2.0**48 for d in digests])[at]


def fold_of(table: Windows, plan: Plan, repeat: int) -> Ints:
    """Fold in which a row's connection is left out, int64 array [N]."""
    place = places(table.column("connection"), f"fold-{repeat}")
    return (place * plan.groups.folds).astype(np.int64)


def lacking(table: Windows, groups: Groups) -> str:
    """What a group of training rows has too little of, empty if it has enough."""
    for name, value in (("SB", 1), ("NSB", 0)):
        mine = table.y == value
        there = (
            ("connections", int(np.unique(table.group[mine]).size), groups.min_connections),
            ("windows", int(mine.sum()), groups.min_windows),
        )
        for what, count, needed in there:
            if count < needed:
                return f"{count} {name} {what} to learn from, {needed} are needed"
    return ""


def choose(x: Floats, y: Ints, group: Ints, plan: Plan) -> dict[str, Any]:
    """Settings with the highest mean accuracy over inner folds of whole connections.

    Among equals the most regularised is taken.
    """
    if len(plan.grid) == 1:
        return dict(plan.grid[0])
    fold = _deal(y, group, plan.groups.inner_folds, plan.seed)
    hits = []
    for settings in plan.grid:
        right = 0
        for k in range(plan.groups.inner_folds):
            model = make(plan.classifier, plan.seed, settings).fit(x[fold != k], y[fold != k])
            right += int((model.predict(x[fold == k]) == y[fold == k]).sum())
        hits.append(right)
    return dict(plan.grid[int(np.argmax(hits))])


def fit(table: Windows, plan: Plan) -> tuple[Estimator, dict[str, Any]]:
    """Choose settings on all rows of a table and fit on them; ``(estimator, settings)``."""
    x = table.matrix(plan.features)
    settings = choose(x, table.y, table.group, plan)
    return make(plan.classifier, plan.seed, settings).fit(x, table.y), settings


def fit_without(table: Windows, plan: Plan, repeat: int, fold: int) -> Estimator | None:
    """A model from the rows outside a fold, settings chosen there; None if a class is missing.

    Parameters
    ----------
    table : Windows
        Labelled rows with finite features.
    plan, repeat, fold
        See `Plan`.
    """
    rest = table.take(fold_of(table, plan, repeat) != fold)
    if np.unique(rest.y).size < 2:
        return None
    return fit(rest, plan)[0]


def cross_fit(
    table: Windows, plan: Plan, pooled: Mapping[tuple[int, int], Estimator]
) -> tuple[Floats, Floats]:
    """P(SB) of every row by models that never saw its connection.

    Parameters
    ----------
    table : Windows
        A group's training rows, N.
    plan : Plan
    pooled : mapping
        (repeat, fold) -> pooled model that left that fold out.

    Returns
    -------
    (float64 array [repeats, N], float64 array [repeats, N])
        P(SB) by the group's own models, and by the pooled ones; NaN if no own model could be made.
    """
    x = table.matrix(plan.features)
    own = np.full((plan.groups.repeats, len(table)), np.nan)
    other = own.copy()
    for repeat in range(plan.groups.repeats):
        folds = fold_of(table, plan, repeat)
        for fold in np.unique(folds):
            left = folds == fold
            other[repeat, left] = probability(pooled[repeat, int(fold)], x[left])
            model = fit_without(table, plan, repeat, int(fold))
            if model is not None:
                own[repeat, left] = probability(model, x[left])
    return own, other


def hits(p: Floats, y: Ints) -> Floats:
    """Share of repeats in which a row [N] is answered rightly, from probabilities [repeats, N]."""
    return np.asarray(((p > THRESHOLD) == (y == 1)).mean(axis=0), dtype=np.float64)


def paired(own: Floats, pooled: Floats, group: Ints, plan: Plan) -> dict[str, Interval]:
    """Means over windows with bootstrap intervals, whole connections resampled together.

    Parameters
    ----------
    own, pooled : float64 array [N]
        Right answers, 0 to 1, per window.
    group : int array [N]
        Connection of each window.
    plan : Plan

    Returns
    -------
    dict
        ``own``, ``pooled`` and ``difference`` (own less pooled) as intervals.
    """
    _, code = np.unique(group, return_inverse=True)
    n = int(code.max()) + 1
    columns = {"own": own, "pooled": pooled, "difference": own - pooled}
    total = np.stack([np.bincount(code, weights=value) for value in columns.values()], axis=1)
    count = np.bincount(code).astype(np.float64)
    rng = np.random.default_rng(plan.seed)
    means = np.empty((plan.resamples, 3))
    for i in range(plan.resamples):
        weight = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        means[i] = (weight @ total) / (weight @ count)
    low, high = np.quantile(means, [0.5 - plan.confidence / 2, 0.5 + plan.confidence / 2], axis=0)
    return {
        name: Interval(mean=float(value.mean()), low=float(low[i]), high=float(high[i]))
        for i, (name, value) in enumerate(columns.items())
    }


def _deal(y: Ints, group: Ints, folds: int, seed: int) -> Ints:
    """Fold per row, int64 array [N]: connections of each class dealt out evenly, at random."""
    rng = np.random.default_rng(seed)
    last = last_of_each(group)
    number = np.empty(int(group.max()) + 1, dtype=np.int64)
    for label in (0, 1):
        mine = group[last][y[last] == label]
        number[rng.permutation(mine)] = np.arange(mine.size) % folds
    return number[group]
