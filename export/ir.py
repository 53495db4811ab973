"""The intermediate form: what a model means once its features are integers.

A form scores an integer observation; the observation belongs to ``labels[1]`` when its score is
above ``cut``, to ``labels[0]`` otherwise. ``evaluate`` is that meaning: every target is compared
with it, and it is written for being read rather than for speed. Scores are exact integers:

- ``Tree``: probability of ``labels[1]`` in Q16;
- ``Forest``: the sum of its trees' values, Q16 probabilities (or Q16 margins when boosted);
- ``Linear``: ``weights . x + bias`` in Q``shift``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from export.fixed import INT32_MAX, INT32_MIN
from features.spec import Feature

Ints = NDArray[np.int64]

MAX_DEPTH = 128
MAX_NODES = 1 << 20
MAX_FEATURES = 1024


class Verdicts(NamedTuple):
    """Answers of a form or of a target: ``classes`` (0 or 1) and ``scores``, int64 [n] each."""

    classes: Ints
    scores: Ints


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

    def reach(self, x: Ints) -> Ints:
        """Index of the leaf that each row of ``x`` (int64 [n, d]) falls into, int64 [n]."""
        feature, value, right = self.arrays
        at = np.zeros(len(x), dtype=np.int64)
        rows = np.arange(len(x))[feature[at] >= 0]
        while len(rows):
            here = at[rows]
            goes_left = x[rows, feature[here]] <= value[here]
            at[rows] = np.where(goes_left, here + 1, right[here])
            rows = rows[feature[at[rows]] >= 0]
        return at


@dataclass(frozen=True)
class Tree:
    """A decision tree whose leaves hold Q16 probabilities of ``labels[1]``."""

    kind: ClassVar[str] = "tree"
    features: tuple[Feature, ...]
    labels: tuple[str, str]
    cut: int
    nodes: Nodes

    @property
    def trees(self) -> tuple[Nodes, ...]:
        """The one tree, for code that handles trees and forests alike."""
        return (self.nodes,)

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on int64 [n, d] observations within 32 bits."""
        return _verdicts(self.nodes.arrays[1][self.nodes.reach(checked(x, self.features))], self)


@dataclass(frozen=True)
class Forest:
    """Trees whose leaf values are added."""

    kind: ClassVar[str] = "forest"
    features: tuple[Feature, ...]
    labels: tuple[str, str]
    cut: int
    trees: tuple[Nodes, ...]

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on int64 [n, d] observations within 32 bits."""
        x = checked(x, self.features)
        scores = np.zeros(len(x), dtype=np.int64)
        for nodes in self.trees:
            scores += nodes.arrays[1][nodes.reach(x)]
        return _verdicts(scores, self)


@dataclass(frozen=True)
class Linear:
    """A weighted sum; ``weights`` fit 32 bits and no 32-bit observation overflows 64 bits."""

    kind: ClassVar[str] = "linear"
    features: tuple[Feature, ...]
    labels: tuple[str, str]
    cut: int
    weights: tuple[int, ...]
    bias: int
    shift: int

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on int64 [n, d] observations within 32 bits."""
        weights = np.array(self.weights, dtype=np.int64)
        return _verdicts(checked(x, self.features) @ weights + self.bias, self)


Form = Tree | Forest | Linear
FORMS: dict[str, type[Form]] = {form.kind: form for form in (Tree, Forest, Linear)}


def checked(x: Ints, features: tuple[Feature, ...]) -> Ints:
    """``x`` as int64 [n, d], or ValueError where it isn't 32-bit integers of ``d`` columns."""
    x = np.asarray(x)
    if x.dtype.kind not in "iu" or x.ndim != 2 or x.shape[1] != len(features):
        raise ValueError(f"integers [n, {len(features)}] expected, not {x.dtype} {x.shape}")
    if x.size and (x.min() < INT32_MIN or x.max() > INT32_MAX):
        raise ValueError("observations must fit 32 bits: clip them to the features' ranges")
    return x.astype(np.int64)


def _verdicts(scores: Ints, form: Form) -> Verdicts:
    return Verdicts((scores > form.cut).astype(np.int64), scores)
