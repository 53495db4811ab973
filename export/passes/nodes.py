"""Takes nodes out of trees: the weakest comparison goes first."""

from __future__ import annotations

import heapq

from data.errors import UserError
from export.forms.forest import Forest
from export.forms.nodes import Nodes
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


def smaller(form: Tree | Forest, nodes: int, x: Ints) -> Tree | Forest:
    """Keep at most ``nodes`` nodes over all trees.

    One comparison between two leaves after the other becomes a leaf: the one that changes the
    fewest classes on ``x`` (int64 array [N, d]) against the form as given and, among these, the
    scores least (sum of squares).

    Raises
    ------
    UserError
        When there are more trees than nodes allowed.
    """
    if nodes < len(form.trees):
        raise UserError(f"--set nodes={nodes}: {len(form.trees)} trees have one node each at least")
    growths = [_Growth(tree, x) for tree in form.trees]
    meant = form.evaluate(x)
    score = meant.scores.copy()
    count = sum(map(len, form.trees))

    def cost(t: int, at: int) -> tuple[int, float]:
        growth = growths[t]
        rows, value = growth.reaching[at], growth.instead(at)
        after = score[rows] - growth.score[rows] + value
        changed = ((after > form.decision_threshold) != meant.classes[rows]).sum()
        changed -= ((score[rows] > form.decision_threshold) != meant.classes[rows]).sum()
        return int(changed), float(((value - growth.first[rows]) ** 2).sum())

    heap = [(*cost(t, at), t, at) for t, growth in enumerate(growths) for at in growth.ready()]
    heapq.heapify(heap)
    while count > nodes:
        *thought, t, at = heapq.heappop(heap)
        # Other trees moved since: what it costs now may be more than what was thought.
        now = cost(t, at)
        if heap and now > tuple(thought) and (*now, t, at) > heap[0]:
            heapq.heappush(heap, (*now, t, at))
            continue
        growth = growths[t]
        rows, value = growth.reaching[at], growth.instead(at)
        score[rows] += value - growth.score[rows]
        growth.score[rows] = value
        count -= 2
        parent = growth.collapse(at, value)
        if parent >= 0:
            heapq.heappush(heap, (*cost(t, parent), t, parent))
    return with_trees(form, [growth.result() for growth in growths])


class _Growth:
    """A tree while it shrinks."""

    def __init__(self, nodes: Nodes, x: Ints):
        self.nodes = nodes
        self.size = sizes(nodes)
        self.reaching = rows_reaching(nodes, x)
        self.first = nodes.arrays[1][nodes.reach(x)]
        self.score = self.first.copy()
        self.leaves: dict[int, int] = {}
        self.parent = [-1] * len(nodes)
        for i, column in enumerate(nodes.feature):
            if column >= 0:
                self.parent[i + 1] = self.parent[nodes.right[i]] = i

    def is_leaf(self, at: int) -> bool:
        return self.nodes.feature[at] < 0 or at in self.leaves

    def is_ready(self, at: int) -> bool:
        return not self.is_leaf(at) and self.is_leaf(at + 1) and self.is_leaf(self.nodes.right[at])

    def ready(self) -> list[int]:
        return [i for i in range(len(self.nodes)) if self.is_ready(i)]

    def instead(self, at: int) -> int:
        return leaf_instead(self.nodes, at, self.size[at], self.first[self.reaching[at]])

    def collapse(self, at: int, value: int) -> int:
        """Make it a leaf; returns the parent if that can be next, else -1."""
        self.leaves[at] = value
        parent = self.parent[at]
        return parent if parent >= 0 and self.is_ready(parent) else -1

    def result(self) -> Nodes:
        return collapsed(self.nodes, self.leaves)
