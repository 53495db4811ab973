"""Defines the form of a forest: decision trees whose values are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from export.forms.nodes import MAX_NODES, Nodes, around_trees, node_lists, read_nodes, spread
from export.ir import Ints, Verdicts, above_threshold, checked
from export.reading import Malformed, listed
from features.spec import Feature

BODY = frozenset({"trees"})


@dataclass(frozen=True)
class Forest:
    """Trees whose leaf values (Q16 probabilities, or Q16 margins when boosted) are added."""

    kind: ClassVar[str] = "forest"
    outputs: ClassVar[int] = 1
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    trees: tuple[Nodes, ...]

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        x = checked(x, self.features)
        scores = np.zeros(len(x), dtype=np.int64)
        for nodes in self.trees:
            scores += nodes.arrays[1][nodes.reach(x)]
        return above_threshold(scores, self.decision_threshold)


def body(form: Forest) -> dict[str, Any]:
    """The trees' nodes."""
    return {"trees": [node_lists(nodes) for nodes in form.trees]}


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Forest:
    """A forest from a document's parts."""
    if len(labels) != 2:
        raise Malformed("labels: two names were expected")
    given = listed(document["trees"], "trees")
    trees = tuple(read_nodes(t, len(features), f"trees[{i}]") for i, t in enumerate(given))
    if not trees or sum(map(len, trees)) > MAX_NODES:
        raise Malformed(f"trees: 1 tree at least and {MAX_NODES} nodes at most were expected")
    return Forest(features, labels, decision_threshold, trees)


def boundary_vectors(form: Forest, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations at every threshold -1, 0, +1 and in every leaf of every tree, two each."""
    return around_trees(form.trees, form.features, rng)


def timed(form: Forest, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from all leaves of all trees."""
    return spread(form.trees, form.features, rng, rows)
