"""Random forms for property tests."""

from hypothesis import strategies as st

from export.fixed import INT32_MAX, INT32_MIN
from export.forms.forest import Forest
from export.forms.nodes import Nodes
from export.forms.tree import Tree
from export.forms.trees import Trees
from features.spec import Feature

SPECS = tuple(Feature(f"f{i}", "us", -2.0e9, 2.0e9, 1, "test", "any") for i in range(4))

edges = st.sampled_from([INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX])
thresholds = edges | st.integers(INT32_MIN, INT32_MAX) | st.integers(-3, 3)
values = st.sampled_from([INT32_MIN, 0, 65536, INT32_MAX]) | st.integers(INT32_MIN, INT32_MAX)


def _joined(feature, threshold, left, right):
    turn = 1 + len(left[0])
    return (
        [feature, *left[0], *right[0]],
        [threshold, *left[1], *right[1]],
        [turn, *(r + 1 if r else 0 for r in left[2]), *(r + turn if r else 0 for r in right[2])],
    )


_subtrees = st.recursive(
    values.map(lambda v: ([-1], [v], [0])),
    lambda inner: st.builds(_joined, st.integers(0, 3), thresholds, inner, inner),
    max_leaves=24,
)
nodes = _subtrees.map(lambda parts: Nodes(*map(tuple, parts)))
trees = st.builds(Tree, st.just(SPECS), st.just(("NSB", "SB")), values, nodes)
forests = st.builds(
    Forest,
    st.just(SPECS),
    st.just(("NSB", "SB")),
    st.integers(-(2**63), 2**63 - 1) | values,
    st.lists(nodes, min_size=1, max_size=5).map(tuple),
)


@st.composite
def several(draw, most_labels=6, most_trees=6):
    """Trees with a score per label, whose leaves have rows or whose trees add to one label each."""
    labels = tuple(f"label {i}" for i in range(draw(st.integers(1, most_labels))))
    grown = draw(st.lists(nodes, min_size=1, max_size=most_trees).map(tuple))
    places = draw(st.integers(0, 30))
    if draw(st.booleans()):
        into = tuple(draw(st.integers(0, len(labels) - 1)) for _ in grown)
        return Trees(SPECS, labels, grown, into, (), places)
    row = st.tuples(*[values] * len(labels))
    rows = draw(st.lists(row, min_size=1, max_size=8).map(tuple))
    pointed = tuple(
        Nodes(
            n.feature,
            tuple(v if f >= 0 else v % len(rows) for f, v in zip(n.feature, n.value, strict=True)),
            n.right,
        )
        for n in grown
    )
    return Trees(SPECS, labels, pointed, (), rows, places)
