"""A tree of sums: a leaf is drawn with odds in proportion to its value.

An array of 2 n nodes for n leaves, n a power of two: node i is the sum of 2 i and 2 i + 1, node 1
of all, leaf k is node n + k.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Tree = NDArray[np.float64]


def new(leaves: int) -> Tree:
    """A tree of zeros."""
    return np.zeros(2 << max(0, leaves - 1).bit_length())


@njit(cache=True)
def put(tree: Tree, leaves: NDArray[np.int64], values: Tree) -> None:
    """Set leaves and the sums above them."""
    half = len(tree) // 2
    for k in range(len(leaves)):
        node = half + leaves[k]
        tree[node] = values[k]
        node >>= 1
        while node:
            # Summed anew, not by the difference, so that errors of rounding don't pile up.
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1


@njit(cache=True)
def draw(tree: Tree, shares: Tree, beta: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Draw one leaf in each of equal strata of the total.

    Parameters
    ----------
    tree : float64 array [2 n]
    shares : float64 array [B]
        Where in its stratum, 0 to 1.
    beta : float
        How far weights make up for the odds.

    Returns
    -------
    leaves : int64 array [B]
    weights : float32 array [B]
        Values to the power of ``-beta``, over the greatest of them.
    """
    half, count = len(tree) // 2, len(shares)
    leaves, weights = np.empty(count, np.int64), np.empty(count, np.float32)
    least = np.inf
    for k in range(count):
        left = (k + shares[k]) / count * tree[1]
        node = 1
        while node < half:
            node *= 2
            # Into an empty branch only rounding leads.
            if left >= tree[node] and tree[node + 1] > 0.0:
                left -= tree[node]
                node += 1
        leaves[k] = node - half
        least = min(least, tree[node])
    for k in range(count):
        weights[k] = (least / tree[half + leaves[k]]) ** beta
    return leaves, weights
