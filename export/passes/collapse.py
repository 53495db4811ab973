"""Makes inner nodes of trees leaves, which the passes over trees share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from export.forms.forest import Forest
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.ir import Ints
from export.passes.tidy import tidy_nodes

KINDS = frozenset({"tree", "forest"})


def with_trees(form: Tree | Forest, trees: Sequence[Nodes]) -> Tree | Forest:
    """The form with other trees, tidied."""
    tidied = tuple(tidy_nodes(nodes, form.features) for nodes in trees)
    if isinstance(form, Tree):
        return dataclasses.replace(form, nodes=tidied[0])
    return dataclasses.replace(form, trees=tidied)


def rows_reaching(nodes: Nodes, x: Ints) -> list[Ints]:
    """Indices of the rows of ``x`` (int64 array [N, d]) that reach each node."""
    reaching = [np.arange(len(x))] * len(nodes)
    for i, column in enumerate(nodes.feature):
        if column >= 0:
            left = x[reaching[i], column] <= nodes.value[i]
            reaching[i + 1], reaching[nodes.right[i]] = reaching[i][left], reaching[i][~left]
    return reaching


def sizes(nodes: Nodes) -> list[int]:
    """Number of nodes of each node's subtree."""
    size = [1] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        if nodes.feature[i] >= 0:
            size[i] += size[i + 1] + size[nodes.right[i]]
    return size


def leaf_instead(nodes: Nodes, at: int, size: int, scores: Ints) -> int:
    """Value of a leaf in place of the subtree at ``at``: the mean score of the rows reaching it.

    Where none does, the mean of the subtree's leaves.
    """
    if not len(scores):
        inside = range(at, at + size)
        scores = np.array([nodes.value[i] for i in inside if nodes.feature[i] < 0])
    return int(np.floor(scores.mean() + 0.5))


def collapsed(nodes: Nodes, leaves: Mapping[int, int]) -> Nodes:
    """The tree with leaves of the given values in place of the subtrees at the given nodes."""
    size = sizes(nodes)
    kept: list[int] = []
    place: dict[int, int] = {}
    i = 0
    while i < len(nodes):
        place[i] = len(kept)
        kept.append(i)
        i += size[i] if i in leaves else 1
    inner = [nodes.feature[i] >= 0 and i not in leaves for i in kept]
    return Nodes(
        tuple(nodes.feature[i] if a else -1 for i, a in zip(kept, inner, strict=True)),
        tuple(leaves.get(i, nodes.value[i]) for i in kept),
        tuple(place[nodes.right[i]] if a else 0 for i, a in zip(kept, inner, strict=True)),
    )
