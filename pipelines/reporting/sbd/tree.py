"""Draw a decision tree as SVG in the page's own colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export.forms.nodes import Nodes
from export.forms.tree import Tree

Q16 = 1 << 16
LEAF_WIDTH, NODE_WIDTH = 66, 132
HEIGHT, LEVEL = 34, 78


@dataclass
class _Box:
    """The box drawn for a node; ``x`` is its middle, in pixels."""

    node: int
    depth: int
    width: int
    x: float = 0.0
    children: list[_Box] = field(default_factory=list)


def draw(form: Tree, levels: int | None = None) -> str:
    """Draw a tree.

    scikit-learn's ``plot_tree`` draws fitted estimators, whereas an entry keeps the integer form.

    Parameters
    ----------
    form : Tree
        The tree as exported.
    levels : int, optional
        Levels of questions to draw; what is below is drawn as the number of its leaves.

    Returns
    -------
    str
        An ``svg`` element.
    """
    import jinja2

    leaves = _leaves_below(form.nodes)
    root = _box(form.nodes, 0, 0, levels)
    width = _place(root, 0.0)
    depth = _deepest(root)
    height = depth * LEVEL + HEIGHT + 4
    shapes: list[dict[str, Any]] = []
    _shape(form, root, leaves, shapes)
    template = Path(__file__).with_name("tree.svg.j2").read_text(encoding="utf-8")
    return (
        jinja2.Environment(autoescape=True)
        .from_string(template)
        .render(
            label=f"Decision tree of {len(form.nodes)} nodes",
            width=f"{width:.0f}",
            height=height,
            shapes=shapes,
        )
    )


def _leaves_below(nodes: Nodes) -> list[int]:
    count = [1] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):  # preorder: children come after their parent
        if nodes.feature[i] >= 0:
            count[i] = count[i + 1] + count[nodes.right[i]]
    return count


def _box(nodes: Nodes, i: int, depth: int, levels: int | None) -> _Box:
    asks = nodes.feature[i] >= 0 and (levels is None or depth < levels)
    box = _Box(i, depth, NODE_WIDTH if asks else LEAF_WIDTH)
    if asks:
        box.children = [_box(nodes, child, depth + 1, levels) for child in (i + 1, nodes.right[i])]
    return box


def _place(box: _Box, left: float) -> float:
    """Place a subtree from ``left`` on; returns its right edge."""
    if not box.children:
        box.x = left + box.width / 2 + 4
        return left + box.width + 8
    right = left
    for child in box.children:
        right = _place(child, right)
    box.x = (box.children[0].x + box.children[-1].x) / 2
    return max(right, box.x + box.width / 2 + 8)


def _deepest(box: _Box) -> int:
    return max([box.depth, *(_deepest(child) for child in box.children)])


def _shape(form: Tree, box: _Box, leaves: list[int], shapes: list[dict[str, Any]]) -> None:
    """Add the shapes of a subtree: lines with their answers first, boxes over them."""
    nodes = form.nodes
    y = box.depth * LEVEL + 2
    for child, answer in zip(box.children, ("yes", "no"), strict=False):
        below = child.depth * LEVEL + 2
        shapes.append(
            {
                "answer": answer,
                "x": f"{box.x:.0f}",
                "y": y + HEIGHT,
                "to_x": f"{child.x:.0f}",
                "to_y": below,
                "middle_x": f"{(box.x + child.x) / 2:.0f}",
                "middle_y": f"{(y + HEIGHT + below) / 2 + 3:.0f}",
            }
        )
        _shape(form, child, leaves, shapes)
    feature = nodes.feature[box.node]
    if box.children:
        spec = form.features[feature]
        value = nodes.value[box.node] / spec.scale
        lines, kind = (spec.name, f"≤ {value:.4g} ?"), "question"
    elif feature >= 0:
        lines, kind = ("…", f"{leaves[box.node]} leaves"), "more"
    else:
        shared = nodes.value[box.node] > form.decision_threshold
        share = nodes.value[box.node] / Q16
        lines, kind = (form.labels[shared], f"{share:.2f}"), "sb" if shared else "nsb"
    shapes.append(
        {
            "kind": kind,
            "x": f"{box.x:.0f}",
            "y": y,
            "left": f"{box.x - box.width / 2:.0f}",
            "width": box.width,
            "height": HEIGHT,
            "lines": lines,
        }
    )
