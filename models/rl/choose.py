"""Choose actions by a network's scores: the best, mostly the best, or at random by its odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from models.rl.layout import Layout

Scores = NDArray[np.float32]
Actions = NDArray[np.int64]


def odds(layout: Layout, weights: Mapping[int, Sequence[float]]) -> NDArray[np.float64]:
    """How likely a random action is the first, one of the first two, ..., float64 array [A, C].

    Parameters
    ----------
    layout : Layout
    weights : mapping
        Kind -> weight of each of its actions; kinds that are left out choose evenly.

    Raises
    ------
    ValueError
        When a kind has another number of actions.
    """
    table = np.zeros((layout.parts, layout.actions))
    for part, kind in enumerate(layout.kinds):
        count = layout.action_counts[kind]
        given = weights.get(kind, [1.0] * count)
        if len(given) != count:
            raise ValueError(f"kind {kind} has {count} actions, not {len(given)}")
        table[part, :count] = np.asarray(given) / sum(given)
    total = table.cumsum(axis=1)
    # Rounding must not leave a gap below 1.
    total[total > 1.0 - 1e-9] = np.inf
    return total


def best(scores: Scores) -> Actions:
    """The best action of each part, int64 array [N, A]; scores are float32 array [N, A, C]."""
    found: Actions = scores.argmax(axis=2)
    return found


def mostly_best(
    scores: Scores, epsilon: float, table: NDArray[np.float64], rng: np.random.Generator
) -> Actions:
    """The best action, or with probability epsilon a random one by `odds`, part by part."""
    return _mostly_best(scores, epsilon, table, rng.random((*scores.shape[:2], 2)))


def sampled(scores: Scores, rng: np.random.Generator) -> tuple[Actions, NDArray[np.float32]]:
    """Actions drawn with the odds that logits give, and the logarithms of their odds.

    Returns
    -------
    actions : int64 array [N, A]
    logp : float32 array [N, A]
    """
    return _sampled(scores, rng.random(scores.shape[:2]))


@njit(cache=True)
def _mostly_best(
    scores: Scores, epsilon: float, table: NDArray[np.float64], draws: NDArray[np.float64]
) -> Actions:
    lanes, parts, actions = scores.shape
    found = np.zeros((lanes, parts), np.int64)
    for n in range(lanes):
        for a in range(parts):
            if draws[n, a, 0] < epsilon:
                while draws[n, a, 1] >= table[a, found[n, a]]:
                    found[n, a] += 1
            else:
                for c in range(1, actions):
                    if scores[n, a, c] > scores[n, a, found[n, a]]:
                        found[n, a] = c
    return found


@njit(cache=True)
def _sampled(scores: Scores, draws: NDArray[np.float64]) -> tuple[Actions, NDArray[np.float32]]:
    lanes, parts, actions = scores.shape
    found, logp = np.zeros((lanes, parts), np.int64), np.zeros((lanes, parts), np.float32)
    weight = np.empty(actions)
    for n in range(lanes):
        for a in range(parts):
            # Taken off before the exponential, which would overflow.
            most = scores[n, a].max()
            total = 0.0
            for c in range(actions):
                weight[c] = np.exp(np.float64(scores[n, a, c]) - most)
                total += weight[c]
            left = draws[n, a] * total
            for c in range(actions):
                if weight[c] > 0.0:
                    # The last one if rounding leads past all.
                    found[n, a] = c
                    left -= weight[c]
                    if left < 0.0:
                        break
            logp[n, a] = np.log(weight[found[n, a]] / total)
    return found, logp
