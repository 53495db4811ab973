"""The partition of section 7, against all partitions of up to six subflows."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.sbd.partition import components, contradicted, coupled, subsets, together


def every_partition(n):
    """All partitions of 0 .. n-1 as tuples of group numbers in order of appearance."""
    found = [(0,)] if n else [()]
    for _ in range(n - 1):
        found = [(*p, g) for p in found for g in range(max(p) + 2)]
    return found


@st.composite
def verdicts(draw, most=6):
    n = draw(st.integers(1, most))
    pairs = list(combinations(range(n), 2))
    drawn = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    shared = np.zeros((n, n), np.bool_)
    for (a, b), said in zip(pairs, drawn, strict=True):
        # Either triangle, and both.
        way = draw(st.integers(0, 2)) if said else -1
        shared[a, b], shared[b, a] = way in (0, 2), way in (1, 2)
    return shared


@settings(max_examples=150, deadline=None)
@given(shared=verdicts())
def test_it_meets_both_requirements_as_no_other_does(shared):
    n = len(shared)
    pairs = [(a, b) for a, b in combinations(range(n), 2) if shared[a, b] or shared[b, a]]
    allowed = [p for p in every_partition(n) if all(p[a] == p[b] for a, b in pairs)]
    most = max(len(set(p)) for p in allowed)
    best = [p for p in allowed if len(set(p)) == most]
    assert len(best) == 1
    group = components(shared)
    assert [np.unique(group).tolist().index(g) for g in group] == list(best[0])
    assert all(group[i] == min(np.flatnonzero(group == group[i])) for i in range(n))


def test_partitions_are_counted_by_bell():
    assert [len(every_partition(n)) for n in range(1, 7)] == [1, 2, 5, 15, 52, 203]


def test_a_chain_of_verdicts_is_one_set_and_is_told():
    shared = np.zeros((2, 3, 3), np.bool_)
    shared[:, 0, 1] = shared[:, 1, 2] = True
    shared[1, 0, 2] = True
    judged = np.triu(np.ones((2, 3, 3), np.bool_), 1)
    assert components(shared).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert contradicted(shared, judged).tolist() == [True, False]
    judged[0, 0, 2] = False
    assert not contradicted(shared, judged).any()


def test_many_windows_at_once_are_each_by_itself():
    rng = np.random.default_rng(3)
    shared = rng.random((40, 5, 5)) < 0.2
    at_once = components(shared)
    assert at_once.shape == (40, 5)
    for one, group in zip(shared, at_once, strict=True):
        assert components(one).tolist() == group.tolist()


def test_the_longest_chain_of_eight_comes_together():
    shared = np.zeros((8, 8), np.bool_)
    for a in range(7):
        shared[7 - a, 6 - a] = True
    assert components(shared).tolist() == [0] * 8


@pytest.mark.parametrize(
    ("group", "sets", "said"),
    [
        ([0, 0, 2], [[1, 2], [3]], [True, True, False]),
        ([0, 1, 0], [[1, 3], [2]], [True, False, True]),
        ([0, 1, 2], [[1], [2], [3]], [False] * 3),
    ],
)
def test_sets_of_two_and_more_are_coupled(group, sets, said):
    group = np.array(group)
    assert subsets(group, [1, 2, 3]) == sets
    assert coupled(group).tolist() == said


def test_together_is_what_the_sets_say():
    for group in product(range(2), repeat=3):
        first = [group.index(g) for g in group]
        same = together(np.array(first))
        assert same.tolist() == [[a == b for b in group] for a in group]


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="n, n"):
        components(np.zeros((2, 3), np.bool_))
