"""k-medoids of a distance matrix, and the choice of k by silhouette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.sbd.params import Conditions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 50
"""Rounds of moving medoids at most; they settle within about ten."""


@dataclass(frozen=True)
class Partition:
    """Clusters: rows ``medoid`` int64 array [k], and ``label`` int64 array [n] index into them."""

    medoid: Ints
    label: Ints
    cost: float


def fit(matrix: Floats, k: int, rng: np.random.Generator, starts: int) -> Partition:
    """Best of several starts of moving medoids, by the sum of squared distances.

    Parameters
    ----------
    matrix : float64 array [n, n]
        Distances, at least ``k`` of the points apart from each other.
    k, starts : int
        Clusters, and k-means++ starts (Arthur and Vassilvitskii 2007).
    rng : numpy Generator
        Source of the starts.
    """
    squared = matrix**2
    found = [_settled(squared, _spread_out(squared, k, rng)) for _ in range(starts)]
    return min(found, key=lambda one: one.cost)


def choices(
    matrix: Floats, settings: Conditions, rng: np.random.Generator
) -> list[dict[str, float]]:
    """Silhouette and stability per number of clusters.

    Parameters
    ----------
    matrix : float64 array [n, n]
        Distances of the sample.
    settings : Conditions
        ``clusters`` (range of k), ``halves`` (random splits into two), ``least``.
    rng : numpy Generator
        Source of the splits and starts.

    Returns
    -------
    list of dict
        ``k``, ``silhouette`` (mean over the halves), ``spread`` (standard deviation),
        ``stability`` (adjusted Rand index over all points of the clusterings by two halves, mean
        over splits), ``smallest`` (members of the smallest cluster, least of all halves, as if
        of the whole sample).
    """
    from sklearn.metrics import adjusted_rand_score, silhouette_score

    count = len(matrix)
    apart = len(np.unique(matrix.round(9), axis=0))
    low, high = settings.clusters
    splits = [np.array_split(rng.permutation(count), 2) for _ in range(settings.halves)]
    rows = []
    for k in range(low, min(high, apart // 4) + 1):
        silhouettes, agreements, smallest = [], [], count
        for pair in splits:
            answers = []
            for half in pair:
                own = matrix[np.ix_(half, half)]
                part = fit(own, k, rng, settings.starts)
                silhouettes.append(silhouette_score(own, part.label, metric="precomputed"))
                smallest = min(smallest, 2 * int(np.bincount(part.label, minlength=k).min()))
                answers.append(matrix[:, half[part.medoid]].argmin(axis=1))
            agreements.append(adjusted_rand_score(*answers))
        rows.append(
            {
                "k": k,
                "silhouette": float(np.mean(silhouettes)),
                "spread": float(np.std(silhouettes, ddof=1)),
                "stability": float(np.mean(agreements)),
                "smallest": smallest,
            }
        )
    eligible = [row for row in rows if row["smallest"] >= settings.least]
    if not eligible:
        raise UserError(
            f"no number of groups from {low} to {high} leaves every group {settings.least} of the "
            f"{count} connections: they are too alike, or too few: train without --conditions"
        )
    return eligible


def choose(rows: Sequence[dict[str, float]]) -> int:
    """The largest k whose silhouette is within one ``spread`` of the best.

    More groups at no measurable loss of separation: each is a more special condition.
    """
    best = max(rows, key=lambda row: row["silhouette"])
    near = best["silhouette"] - best["spread"]
    return int(max(row["k"] for row in rows if row["silhouette"] >= near))


def _spread_out(squared: Floats, k: int, rng: np.random.Generator) -> Ints:
    chosen = [int(rng.integers(len(squared)))]
    while len(chosen) < k:
        weight = squared[:, chosen].min(axis=1)
        chosen.append(int(rng.choice(len(squared), p=weight / weight.sum())))
    return np.array(chosen, dtype=np.int64)


def _settled(squared: Floats, medoid: Ints) -> Partition:
    for _ in range(_ROUNDS):
        label = squared[:, medoid].argmin(axis=1)
        moved = np.array([_middle(squared, label == one) for one in range(len(medoid))])
        if (moved == medoid).all():
            break
        medoid = moved
    nearest = squared[:, medoid]
    return Partition(medoid, nearest.argmin(axis=1), float(nearest.min(axis=1).sum()))


def _middle(squared: Floats, mask: NDArray[np.bool_]) -> int:
    inside = np.flatnonzero(mask)
    return int(inside[squared[np.ix_(inside, inside)].sum(axis=0).argmin()])
