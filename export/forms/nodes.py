"""Defines a binary decision tree's nodes, which all kinds of trees share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.ir import Ints
from export.reading import Malformed, integer, listed
from features.spec import Feature

MAX_DEPTH = 128
MAX_NODES = 1 << 20
BLOCK = 4096
"""Rows walked together: they stay in the processor's cache."""


@dataclass(frozen=True)
class Nodes:
    """One binary tree in preorder: the left child of node ``i`` is ``i + 1``.

    Attributes
    ----------
    feature : tuple of int
        Index of the feature compared; -1 marks a leaf.
    value : tuple of int
        Inner node: the threshold, ``x <= threshold`` goes left. Leaf: its score.
    right : tuple of int
        Index of the right child; 0 in a leaf.
    """

    feature: tuple[int, ...]
    value: tuple[int, ...]
    right: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.feature)

    @cached_property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """``feature, value, right`` as int64 arrays."""
        return np.array(self.feature), np.array(self.value), np.array(self.right)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return (len(self) + 1) // 2

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Comparisons made before each node is reached."""
        depth = [0] * len(self)
        for i, feature in enumerate(self.feature):
            if feature >= 0:
                depth[i + 1] = depth[self.right[i]] = depth[i] + 1
        return tuple(depth)

    @cached_property
    def _steps(self) -> tuple[Ints, Ints, Ints]:
        """Feature and threshold of each node, and where ``2 * node + goes_right`` leads.

        A leaf leads to itself, so that all rows make as many steps.
        """
        feature, value, right = self.arrays
        here = np.arange(len(self))
        children = np.stack([here + 1, right], axis=1)
        leaf = feature < 0
        children[leaf] = here[leaf, np.newaxis]
        return np.where(leaf, 0, feature), value, children.ravel()

    def reach(self, x: Ints) -> Ints:
        """Index of the leaf that each row of ``x`` falls into: int64 array [N, d] -> [N]."""
        feature, value, children = self._steps
        depth = max(self.depths)
        at = np.zeros(len(x), dtype=np.int64)
        for start in range(0, len(x), BLOCK):
            rows = x[start : start + BLOCK]
            flat, first = rows.ravel(), np.arange(len(rows)) * x.shape[1]
            here = at[start : start + BLOCK]
            for _ in range(depth):
                goes_right = flat.take(first + feature.take(here)) > value.take(here)
                here = children.take(2 * here + goes_right)
            at[start : start + BLOCK] = here
        return at


def node_lists(nodes: Nodes) -> list[list[int]]:
    """Nodes as a document has them."""
    rows = zip(nodes.feature, nodes.value, nodes.right, strict=True)
    return [[value] if feature < 0 else [feature, value, right] for feature, value, right in rows]


def read_nodes(rows_given: Any, n_features: int, where: str) -> Nodes:
    """Nodes of one tree from a document; whatever isn't one is Malformed."""
    rows = listed(rows_given, where)
    if not 1 <= len(rows) <= MAX_NODES or len(rows) % 2 == 0:
        raise Malformed(f"{where}: a tree has an odd number of nodes, {MAX_NODES} at most")
    feature, value, right = [-1] * len(rows), [0] * len(rows), [0] * len(rows)
    # Preorder needs no search for cycles: a right child must start exactly where the left
    # subtree ended, so the stack of right children still to come describes the whole rest.
    pending: list[int] = []
    for i, row in enumerate(rows):
        here = f"{where}[{i}]"
        row = listed(row, here)
        if len(row) == 3:
            feature[i] = integer(row[0], here, 0, n_features - 1)
            value[i] = integer(row[1], here, INT32_MIN, INT32_MAX)
            right[i] = integer(row[2], here, i + 2, len(rows) - 1)
            pending.append(right[i])
            if len(pending) > MAX_DEPTH:
                raise Malformed(f"{here}: deeper than {MAX_DEPTH}")
        elif len(row) == 1:
            value[i] = integer(row[0], here, INT32_MIN, INT32_MAX)
            if i + 1 < len(rows) and (not pending or pending.pop() != i + 1):
                raise Malformed(f"{here}: the next node isn't the right child that was announced")
        else:
            raise Malformed(f"{here}: [feature, threshold, right] or [value] was expected")
    if pending:
        raise Malformed(f"{where}: the last subtree is missing")
    nodes = Nodes(tuple(feature), tuple(value), tuple(right))
    if max(nodes.depths) > MAX_DEPTH:
        raise Malformed(f"{where}: deeper than {MAX_DEPTH}")
    return nodes


def around_tree(
    nodes: Nodes, features: tuple[Feature, ...], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Observations around every threshold and in every leaf of one tree.

    Returns
    -------
    thresholds : int64 array [2 * 3 * inner nodes, d]
        Two points of each comparison's region, with the compared feature at -1, 0, +1.
    leaves : int64 array [2 * leaves, d]
        Two points of each leaf's region.
    """
    low, high = regions(nodes, features)
    inside = [rng.integers(low, high, endpoint=True) for _ in range(2)]
    feature, value, _ = nodes.arrays
    inner = np.flatnonzero(feature >= 0)
    thresholds = []
    for points in inside:
        for offset in (-1, 0, 1):
            x = points[inner].copy()
            compared = np.clip(value[inner] + offset, INT32_MIN, INT32_MAX)
            x[np.arange(len(inner)), feature[inner]] = compared
            thresholds.append(x)
    return np.concatenate(thresholds), np.concatenate([p[feature < 0] for p in inside])


def regions(nodes: Nodes, features: tuple[Feature, ...]) -> tuple[Ints, Ints]:
    """Smallest and largest observation that reaches each node: two int64 arrays [nodes, d].

    Starts from the features' ranges; if a comparison leaves nothing of them, which a tidied
    tree doesn't have, the region is widened to a point.
    """
    low, high = (np.tile(ends, (len(nodes), 1)) for ends in limits(features))
    for i, column in enumerate(nodes.feature):
        if column < 0:
            continue
        left, right = i + 1, nodes.right[i]
        low[left], high[left] = low[i], high[i]
        low[right], high[right] = low[i], high[i]
        high[left, column] = min(high[i, column], nodes.value[i])
        low[right, column] = max(low[i, column], nodes.value[i] + 1)
        low[left, column] = min(low[left, column], high[left, column])
        high[right, column] = max(low[right, column], high[right, column])
    return np.clip(low, INT32_MIN, INT32_MAX), np.clip(high, INT32_MIN, INT32_MAX)


def spread(
    trees: tuple[Nodes, ...], features: tuple[Feature, ...], rng: np.random.Generator, rows: int
) -> Ints:
    """Observations drawn evenly from all leaves and in random order, int64 array [rows, d].

    Paths are as long and branches as hard to predict as the model allows.
    """
    parts = []
    for nodes in trees:
        low, high = regions(nodes, features)
        leaves = np.flatnonzero(nodes.arrays[0] < 0)
        chosen = rng.choice(leaves, rows // len(trees) + 1)
        parts.append(rng.integers(low[chosen], high[chosen], endpoint=True))
    return np.asarray(rng.permutation(np.concatenate(parts))[:rows])


def around_trees(
    trees: tuple[Nodes, ...], features: tuple[Feature, ...], rng: np.random.Generator
) -> dict[str, Ints]:
    """Observations around every threshold and in every leaf of all trees."""
    around = [around_tree(nodes, features, rng) for nodes in trees]
    return {
        "thresholds": np.concatenate([a[0] for a in around]),
        "leaves": np.concatenate([a[1] for a in around]),
    }
