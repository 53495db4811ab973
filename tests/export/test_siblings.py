"""Forests laid out side by side: the same answers, whole groups, children together."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forms import forests

from export.forms.siblings import LANES, side_by_side
from export.vectors import make_vectors


@settings(max_examples=60, deadline=None)
@given(forests, st.integers(1, 8))
def test_walking_gives_the_sum_of_the_trees(form, lanes):
    walk = side_by_side(form.trees, lanes)
    assert len(walk.roots) == lanes * len(walk.levels)
    assert len(walk.roots) - len(form.trees) < lanes
    value, child, feature = np.array(walk.rows).T
    x = make_vectors(form, np.zeros((0, 4), dtype=np.int64), 20, 1).x
    scores = np.zeros(len(x), dtype=np.int64)
    for i, root in enumerate(walk.roots):
        at = np.full(len(x), root)
        for _ in range(walk.levels[i // lanes]):
            right = (x[np.arange(len(x)), feature[at]] > value[at]) & (child[at] != at)
            at = child[at] + right
        assert (child[at] == at).all(), "the steps end in leaves"
        scores += value[at]
    assert (scores == form.evaluate(x).scores).all()


@settings(max_examples=20, deadline=None)
@given(forests)
def test_no_tree_waits_for_a_deeper_one_of_another_group(form):
    levels = side_by_side(form.trees, LANES).levels
    assert levels[:-1] == sorted(levels[:-1])
    assert max(levels) == max(max(nodes.depths) for nodes in form.trees)
