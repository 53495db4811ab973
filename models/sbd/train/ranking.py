"""Mutual information between a feature and the label, and the subsets it leads to (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

THROUGHPUT = "Thpt"
"""Features with this in their name depend on the congestion control and on how the lab was set
up; the paper leaves them out of every subset (section 3.3)."""


def ranking(
    x: NDArray[np.float64],
    y: NDArray[np.int64],
    names: Sequence[str],
    seeds: int = 10,
    neighbours: int = 3,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Rank features by nearest-neighbour mutual information (Ross 2014, the paper's [34]).

    The estimator breaks ties with a little noise, so that it is averaged over seeds.

    Parameters
    ----------
    x : float64 array [N, d]
        Feature values, finite.
    y : int array [N]
        Labels.
    names : sequence of str, length d
        Feature names.
    seeds, neighbours, seed
        Number of repetitions, neighbours (3 as in the estimator's paper), first seed.

    Returns
    -------
    list of dict
        ``{feature, mi, low, high, rank}`` (nats, 95 % of the seeds between low and high),
        highest first.
    """
    from sklearn.feature_selection import mutual_info_classif

    runs = np.stack(
        [
            mutual_info_classif(x, y, n_neighbors=neighbours, random_state=seed + i)
            for i in range(seeds)
        ]
    )
    mean = runs.mean(axis=0)
    low, high = np.quantile(runs, [0.025, 0.975], axis=0)
    order = np.argsort(-mean, kind="stable")
    return [
        {
            "feature": names[i],
            "mi": float(mean[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "rank": rank,
        }
        for rank, i in enumerate(order, start=1)
    ]


def subsets(ranked: Sequence[dict[str, Any]], count: int) -> list[tuple[str, ...]]:
    """The top-1 ... top-``count`` subsets, without the throughput features."""
    names = [row["feature"] for row in ranked if THROUGHPUT not in row["feature"]]
    return [tuple(names[:k]) for k in range(1, min(count, len(names)) + 1)]
