"""Choose actions by a network's scores: the best, mostly the best, or at random by its odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
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
    found = best(scores)
    draws = rng.random((2, *found.shape))
    random = (draws[1][:, :, None] >= table).sum(axis=2)
    return np.where(draws[0] < epsilon, random, found)


def sampled(scores: Scores, rng: np.random.Generator) -> tuple[Actions, NDArray[np.float32]]:
    """Actions drawn with the odds that logits give, and the logarithms of their odds.

    Returns
    -------
    actions : int64 array [N, A]
    logp : float32 array [N, A]
    """
    shifted = scores.astype(np.float64)
    shifted -= shifted.max(axis=2, keepdims=True)
    weight = np.exp(shifted)
    total = weight.cumsum(axis=2)
    whole = total[:, :, -1:]
    draw = rng.random(total.shape[:2])[:, :, None] * whole
    actions: Actions = (draw >= total).sum(axis=2)
    chosen = np.take_along_axis(shifted, actions[:, :, None], axis=2) - np.log(whole)
    return actions, chosen[:, :, 0].astype(np.float32)
