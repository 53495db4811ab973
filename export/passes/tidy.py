"""Removes branches of trees that nothing reaches and comparisons that decide nothing.

The meaning stays the same on every observation within the features' ranges.
"""

from __future__ import annotations

from export.fixed import limits
from export.forms.nodes import Nodes
from features.spec import Feature


def tidy_nodes(nodes: Nodes, features: tuple[Feature, ...]) -> Nodes:
    """Drop branches that no observation in range reaches and comparisons that decide nothing.

    A comparison decides nothing when both of its sides, tidied, are equal: the same leaf or the
    same subtree.
    """
    low, high = (list(map(int, bound)) for bound in limits(features))
    feature, value, right = _tidied(nodes, 0, low, high)
    return Nodes(tuple(feature), tuple(value), tuple(right))


def _tidied(
    nodes: Nodes, at: int, low: list[int], high: list[int]
) -> tuple[list[int], list[int], list[int]]:
    # Recursion is as deep as the tree, which ir.MAX_DEPTH bounds.
    column, threshold = nodes.feature[at], nodes.value[at]
    if column < 0:
        return [-1], [threshold], [0]
    if threshold >= high[column]:
        return _tidied(nodes, at + 1, low, high)
    if threshold < low[column]:
        return _tidied(nodes, nodes.right[at], low, high)
    was = high[column]
    high[column] = threshold
    left = _tidied(nodes, at + 1, low, high)
    high[column] = was
    was = low[column]
    low[column] = threshold + 1
    other = _tidied(nodes, nodes.right[at], low, high)
    low[column] = was
    if left == other:
        return left
    start, turn = 1, 1 + len(left[0])
    return (
        [column, *left[0], *other[0]],
        [threshold, *left[1], *other[1]],
        [
            turn,
            *(r + start if r else 0 for r in left[2]),
            *(r + turn if r else 0 for r in other[2]),
        ],
    )
