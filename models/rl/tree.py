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
def draw(tree: Tree, shares: Tree) -> tuple[NDArray[np.int64], Tree]:
    """Leaves at shares (0 to 1) of the total, one in each of equal strata, and their values."""
    half, count = len(tree) // 2, len(shares)
    leaves, values = np.empty(count, np.int64), np.empty(count)
    for k in range(count):
        left = (k + shares[k]) / count * tree[1]
        node = 1
        while node < half:
            node *= 2
            # Into an empty branch only rounding leads.
            if left >= tree[node] and tree[node + 1] > 0.0:
                left -= tree[node]
                node += 1
        leaves[k], values[k] = node - half, tree[node]
    return leaves, values
