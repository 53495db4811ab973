"""Cuts trees off at a depth."""

from __future__ import annotations

from export.forms.forest import Forest
from export.forms.tree import Tree
from export.ir import Ints
from export.passes.collapse import (
    KINDS,
    collapsed,
    leaf_instead,
    rows_reaching,
    sizes,
    with_trees,
)

__all__ = ["KINDS", "smaller"]


def smaller(form: Tree | Forest, depth: int, x: Ints) -> Tree | Forest:
    """Keep at most ``depth`` comparisons per tree; what was deeper becomes its mean on ``x``."""
    trees = []
    for nodes in form.trees:
        reaching, size = rows_reaching(nodes, x), sizes(nodes)
        scores = nodes.arrays[1][nodes.reach(x)]
        leaves = {
            i: leaf_instead(nodes, i, size[i], scores[reaching[i]])
            for i, column in enumerate(nodes.feature)
            if column >= 0 and nodes.depths[i] == depth
        }
        trees.append(collapsed(nodes, leaves))
    return with_trees(form, trees)
