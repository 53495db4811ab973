"""Defines the form of a decision tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from export.forms.nodes import Nodes, around_trees, node_lists, read_nodes, spread
from export.ir import Ints, Verdicts, above_threshold, checked
from export.reading import Malformed
from features.spec import Feature

BODY = frozenset({"nodes"})


@dataclass(frozen=True)
class Tree:
    """A decision tree whose leaves hold Q16 probabilities of ``labels[1]``."""

    kind: ClassVar[str] = "tree"
    outputs: ClassVar[int] = 1
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    nodes: Nodes

    @property
    def trees(self) -> tuple[Nodes, ...]:
        """The one tree, for code that handles trees and forests alike."""
        return (self.nodes,)

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        leaves = self.nodes.reach(checked(x, self.features))
        return above_threshold(self.nodes.arrays[1][leaves], self.decision_threshold)


def body(form: Tree) -> dict[str, Any]:
    """The tree's nodes."""
    return {"nodes": node_lists(form.nodes)}


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Tree:
    """A tree from a document's parts."""
    if len(labels) != 2:
        raise Malformed("labels: two names were expected")
    return Tree(
        features, labels, decision_threshold, read_nodes(document["nodes"], len(features), "nodes")
    )


def boundary_vectors(form: Tree, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations at every threshold -1, 0, +1 and in every leaf, two each."""
    return around_trees(form.trees, form.features, rng)


def timed(form: Tree, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from all leaves."""
    return spread(form.trees, form.features, rng, rows)
