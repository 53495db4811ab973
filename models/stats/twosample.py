"""Two-sample tests of windows that belong to connections.

Windows of one connection repeat each other, so that a test that takes them for independent sees
drift everywhere. Here every connection has weight 1, shared among its windows, and what is
exchangeable under the null hypothesis is whole connections.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_CHUNK = 1 << 21
"""Numbers that one step of the permutations works on: they stay in the cache."""


def kolmogorov_smirnov(
    values: Floats, group: Ints, new: Bools, permutations: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Kolmogorov-Smirnov distance of each column and its permutation p-value.

    Parameters
    ----------
    values : float64 array [N, d]
        Windows of both samples.
    group : int64 array [N]
        Connection of each, 0 ... C - 1.
    new : bool array [C]
        Which connections are of the second sample; both have some.
    permutations : int
        How often connections are exchanged between the samples.
    rng : numpy Generator

    Returns
    -------
    distance : float64 array [d]
        Largest difference of the two distribution functions.
    p : float64 array [d]
        ``(1 + permutations at least as far apart) / (1 + permutations)``.
    """
    weight = 1.0 / np.bincount(group)[group]
    sign = np.where(new, 1.0 / new.sum(), -1.0 / (~new).sum())
    order = np.argsort(values, axis=0, kind="stable")
    distance = _distances(values, order, (sign[group] * weight)[None, :])[0]
    beyond = np.zeros(values.shape[1], dtype=np.int64)
    step = max(1, _CHUNK // len(values))
    for start in range(0, permutations, step):
        count = min(step, permutations - start)
        shuffled = rng.permuted(np.tile(sign, (count, 1)), axis=1)
        # A hair below the distance: sums in another order differ in the last bit.
        found = _distances(values, order, shuffled[:, group] * weight)
        beyond += (found >= distance - 1e-12).sum(axis=0)
    p = (1.0 + beyond) / (1.0 + permutations)
    return distance, np.asarray(p, dtype=np.float64)


def classifier_auc(
    values: Floats, group: Ints, new: Bools, trees: int, seed: int, folds: int = 5
) -> dict[str, float]:
    """How well a forest tells new connections from reference ones that it hasn't seen.

    The classifier two-sample test (Lopez-Paz and Oquab 2017): 0.5 if nothing differs, in any
    feature or combination, 1 if the samples don't overlap.

    Parameters
    ----------
    values, group, new
        As in :func:`kolmogorov_smirnov`.
    trees, seed, folds : int
        Size and seed of the forest, and number of folds, which are of whole connections.

    Returns
    -------
    dict
        ``auc`` over connections (mean score of their windows), ``low``, ``high`` (95 %, bootstrap
        over connections).
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedKFold

    score = np.zeros(len(values))
    of_window = new[group]
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for _, held in split.split(np.zeros(len(new)), new):
        tested = np.isin(group, held)
        forest = RandomForestClassifier(
            trees, min_samples_leaf=5, class_weight="balanced", random_state=seed, n_jobs=1
        )
        forest.fit(values[~tested], of_window[~tested])
        score[tested] = forest.predict_proba(values[tested])[:, 1]
    mean = np.bincount(group, weights=score) / np.bincount(group)
    wins = mean[new][:, None] - mean[~new][None, :]
    above = (wins > 0) + 0.5 * (wins == 0)
    rng = np.random.default_rng(seed)
    first = rng.multinomial(above.shape[0], np.full(above.shape[0], 1 / above.shape[0]), 400)
    second = rng.multinomial(above.shape[1], np.full(above.shape[1], 1 / above.shape[1]), 400)
    resampled = ((first @ above) * second).sum(axis=1) / above.size
    low, high = np.quantile(resampled, [0.025, 0.975])
    return {"auc": float(above.mean()), "low": float(low), "high": float(high)}


def novel_share(values: Floats, group: Ints, new: Bools, quantile: float = 0.95) -> float:
    """Share of new connections that lie farther from the reference than its own connections do.

    Distances to the nearest window of another reference connection, in interquartile ranges of
    the reference, averaged over a connection's windows. If new connections come from the
    reference's conditions, about ``1 - quantile`` of them are novel.
    """
    from scipy.spatial.distance import cdist

    known = ~new[group]
    reference = values[known]
    low, middle, high = np.quantile(reference, [0.25, 0.5, 0.75], axis=0)
    width = np.where(high > low, high - low, reference.std(axis=0))
    scaled = (values - middle) / np.where(width > 0, width, 1.0)
    apart = cdist(scaled, scaled[known])
    apart[group[:, None] == group[known][None, :]] = np.inf
    mean = np.bincount(group, weights=apart.min(axis=1)) / np.bincount(group)
    return float((mean[new] > np.quantile(mean[~new], quantile)).mean())


def _distances(values: Floats, order: Ints, mass: Floats) -> Floats:
    """Largest difference of distribution functions [P, d] for signed masses [P, N]."""
    out = np.empty((len(mass), values.shape[1]))
    for column in range(values.shape[1]):
        rank = order[:, column]
        ordered = values[rank, column]
        last = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))
        running = np.cumsum(mass[:, rank], axis=1)[:, last]
        out[:, column] = np.abs(running).max(axis=1)
    return out
