"""Weighted importance sampling, decision by decision (Precup, Sutton and Singh, ICML 2000).

A sequence of logged decisions counts for a policy as much as the policy would have made the same
ones oftener than who made them. Weights are divided by their own sum at each decision, so that an
estimate stays within the rewards that were seen, at the price of a bias that vanishes with the
number of sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Sequences:
    """N sequences of H decisions.

    Attributes
    ----------
    ratios : float64 array [N, H]
        The policy's odds of what was logged over those of who decided.
    rewards : float64 array [N, H]
    cluster : int64 array [N]
        Scenario of each, from 0.
    """

    ratios: Float
    rewards: Float
    cluster: NDArray[np.int64]

    @property
    def weights(self) -> Float:
        """Products of the ratios so far, float64 array [N, H]."""
        found: Float = self.ratios.cumprod(axis=1)
        return found

    def effective(self) -> Float:
        """Effective number of sequences at each decision (Kish), float64 array [H]."""
        w = self.weights
        squares = (w * w).sum(axis=0)
        total = w.sum(axis=0)
        found: Float = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
        return found

    def estimates(self, gamma: float, counts: Float) -> Float:
        """Discounted mean reward of a decision, by each resample of the clusters.

        Parameters
        ----------
        gamma : float
        counts : float64 array [K, clusters]
            How often each resample has each cluster.

        Returns
        -------
        float64 array [K]
            NaN where no weight is left at some decision.
        """
        w = self.weights
        paid = by_cluster(w * self.rewards, self.cluster, counts.shape[1])
        total = by_cluster(w, self.cluster, counts.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (counts @ paid) / (counts @ total)
        found: Float = discounted(means, gamma)
        return found


def discounted(rewards: Float, gamma: float) -> Float:
    """Discounted mean over the last axis."""
    discount = gamma ** np.arange(rewards.shape[-1])
    found: Float = (rewards * discount).sum(axis=-1) / discount.sum()
    return found


def by_cluster(values: Float, cluster: NDArray[np.int64], count: int) -> Float:
    """Sums over each cluster's rows: float64 array [N, ...] -> [count, ...]."""
    found = np.zeros((count, *values.shape[1:]))
    np.add.at(found, cluster, values)
    return found


def resamples(clusters: int, count: int, seed: int = 0) -> Float:
    """How often each resample has each cluster; the first row has each once.

    Returns
    -------
    float64 array [count + 1, clusters]
    """
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=count)
    found: Float = np.concatenate([np.ones((1, clusters)), drawn])
    return found
