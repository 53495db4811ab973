"""Defines the form of trees with several scores: many classes, actions, or real values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN
from export.forms.nodes import MAX_NODES, Nodes, around_trees, node_lists, read_nodes, spread
from export.ir import Ints, Verdicts, checked, verdicts
from export.reading import Malformed, integer, integers, listed
from features.spec import Feature

BODY = frozenset({"trees", "into", "rows", "places"})


@dataclass(frozen=True)
class Trees:
    """One tree or many, with one score per label; the trees' scores are added.

    Attributes
    ----------
    trees : tuple of Nodes
        A leaf's value is the index of its row, or, if there are no rows, what it adds.
    into : tuple of int
        Per tree the label whose score its leaves add to; empty if leaves have rows.
    rows : tuple of tuple of int
        [rows][labels], what a leaf adds to each label's score; leaves that agree share one.
    places : int
        Fractional bits of the scores.
    """

    kind: ClassVar[str] = "trees"
    decision_threshold: ClassVar[int] = 0
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    trees: tuple[Nodes, ...]
    into: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    places: int

    @property
    def outputs(self) -> int:
        """One score per label."""
        return len(self.labels)

    @cached_property
    def table(self) -> Ints:
        """The rows as int64 array [rows, labels]."""
        return np.array(self.rows, dtype=np.int64)

    @cached_property
    def classes(self) -> tuple[int, ...]:
        """Per row the label with the first largest score: a lone tree's answer in that leaf."""
        return tuple(map(int, self.table.argmax(axis=1))) if self.rows else ()

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        x = checked(x, self.features)
        scores = np.zeros((len(x), self.outputs), dtype=np.int64)
        for i, nodes in enumerate(self.trees):
            found = nodes.arrays[1][nodes.reach(x)]
            if self.rows:
                scores += self.table[found]
            else:
                scores[:, self.into[i]] += found
        return verdicts(scores, self.labels, self.decision_threshold)


def body(form: Trees) -> dict[str, Any]:
    """Nodes, and what their leaves stand for."""
    return {
        "trees": [node_lists(nodes) for nodes in form.trees],
        "into": list(form.into),
        "rows": [list(row) for row in form.rows],
        "places": form.places,
    }


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Trees:
    """Trees from a document's parts."""
    if decision_threshold:
        raise Malformed("cut: 0 was expected: the largest score decides")
    given = listed(document["trees"], "trees")
    trees = tuple(read_nodes(t, len(features), f"trees[{i}]") for i, t in enumerate(given))
    if not trees or sum(map(len, trees)) > MAX_NODES:
        raise Malformed(f"trees: 1 tree at least and {MAX_NODES} nodes at most were expected")
    into = integers(document["into"], "into", 0, len(labels) - 1)
    rows = tuple(
        integers(row, f"rows[{i}]", INT32_MIN, INT32_MAX)
        for i, row in enumerate(listed(document["rows"], "rows"))
    )
    if rows:
        if into or len(rows) > MAX_NODES or any(len(row) != len(labels) for row in rows):
            raise Malformed("rows: one score per label each, and no into beside them, expected")
        for i, nodes in enumerate(trees):
            feature, value, _ = nodes.arrays
            leaves = value[feature < 0]
            if leaves.min() < 0 or leaves.max() >= len(rows):
                raise Malformed(f"trees[{i}]: a leaf's value is the index of its row")
    elif len(into) != len(trees):
        raise Malformed("into: a label per tree, or rows, was expected")
    return Trees(features, labels, trees, into, rows, integer(document["places"], "places", 0, 62))


def boundary_vectors(form: Trees, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations at every threshold -1, 0, +1 and in every leaf of every tree, two each."""
    return around_trees(form.trees, form.features, rng)


def timed(form: Trees, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from all leaves of all trees."""
    return spread(form.trees, form.features, rng, rows)
