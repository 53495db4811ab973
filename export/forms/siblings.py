"""Lays out trees for being walked without branches: both children of a node are neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from export.forms.nodes import Nodes

LANES = 4
"""Trees walked side by side. A step waits some 14 cycles for the one before it, four steps take
hardly longer; eight gained another tenth on large forests and lost it on small ones."""


@dataclass(frozen=True)
class Walk:
    """Nodes of all trees in one table.

    Attributes
    ----------
    rows : list of tuple
        ``(value, child, feature)`` per node: ``x[feature] <= value`` goes to node ``child``, all
        else to the one after it. A leaf has itself as child and its score as value.
    roots : list of int
        Row of each root, padded with leaves to whole groups of ``lanes``.
    order : list of int
        Tree of each root, 0 if it is padding.
    levels : list of int
        Per group the depth of its deepest tree.
    """

    rows: list[tuple[int, int, int]]
    roots: list[int]
    order: list[int]
    levels: list[int]


def side_by_side(trees: Sequence[Nodes], lanes: int = LANES, padding: int = 0) -> Walk:
    """Lay out a forest; trees of like depth share a group, so that none waits for another.

    ``padding`` is the value of a leaf that stands where there is no tree.
    """
    rows: list[tuple[int, int, int]] = []
    roots: list[int] = []
    depths: list[int] = []
    order = sorted(range(len(trees)), key=lambda i: max(trees[i].depths))
    for nodes in (trees[i] for i in order):
        roots.append(len(rows))
        depths.append(max(nodes.depths))
        rows += _breadth_first(nodes, len(rows))
    while len(roots) % lanes:
        roots.append(len(rows))
        order.append(0)
        depths.append(0)
        rows.append((padding, len(rows), 0))
    levels = [max(depths[i : i + lanes]) for i in range(0, len(depths), lanes)]
    return Walk(rows, roots, order, levels)


def _breadth_first(nodes: Nodes, start: int) -> list[tuple[int, int, int]]:
    order = [0]
    rows: list[tuple[int, int, int]] = []
    for i in order:  # grows while it is walked
        if nodes.feature[i] < 0:
            rows.append((nodes.value[i], start + len(rows), 0))
            continue
        rows.append((nodes.value[i], start + len(order), nodes.feature[i]))
        order += [i + 1, nodes.right[i]]
    return rows
