"""Fronts and candidates of the search within a budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import UserError
from models.sbd.evaluate.splits import ModelSpec
from models.sbd.params import Params, Protocol
from models.sbd.train.pareto import accuracies, candidates, front
from models.sbd.train.spaces import SPACES, SUBSETS


def test_a_front_by_hand():
    costs = [{"ns": 9.0}, {"ns": 5.0}, {"ns": 5.0}, {"ns": 7.0}, {"ns": 5.0}]
    assert front([0.9, 0.8, 0.7, 0.8, 0.8], costs) == [0, 1]


def test_costs_that_one_lacks_are_not_compared():
    assert front([0.8, 0.8], [{"ns": 5.0, "insns": 3.0}, {"ns": 6.0}]) == [0]
    assert front([0.8, 0.8], [{"ns": 5.0, "insns": 3.0}, {"ns": 6.0, "insns": 2.0}]) == [0, 1]


points = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12
)


@given(points)
def test_a_front_beats_all_others_and_none_of_itself(given_points):
    gains = [float(g) for g, _, _ in given_points]
    costs = [{"a": float(a), "b": float(b)} for _, a, b in given_points]
    kept = front(gains, costs)

    def covers(i, j):
        return gains[i] >= gains[j] and all(costs[i][k] <= costs[j][k] for k in "ab")

    assert all(any(covers(i, j) for i in kept) for j in range(len(gains)))
    assert not any(covers(i, j) for i in kept for j in kept if i != j)
    assert [gains[i] for i in kept] == sorted((gains[i] for i in kept), reverse=True)


@pytest.mark.parametrize("model", SPACES)
def test_candidates_cover_the_space_once(model):
    ranked = [f"f{i}" for i in range(8)]
    found = candidates(model, ranked)
    assert len(found) == len(SUBSETS[model]) * np.prod([len(v) for v in SPACES[model].values()])
    assert len({model_spec.name for model_spec in found}) == len(found)
    assert all(
        model_spec.features == tuple(ranked[: len(model_spec.features)]) for model_spec in found
    )


def test_few_features_give_each_subset_once():
    assert {len(r.features) for r in candidates("dt", ["a", "b", "c"])} == {1, 2, 3}


def test_an_unknown_model_gets_the_nearest():
    with pytest.raises(UserError, match="did you mean 'rf'"):
        candidates("rff", ["a"])


def test_accuracy_is_out_of_sample(table):
    """A tree that learns connections by heart is no better than chance on those left out."""
    telling = ModelSpec("telling", "decision-tree", ("RTT_SD_Ratio",), {"depth": 3})
    deep = ModelSpec("deep", "decision-tree", ("Thpt_DTWD",), {"depth": 15})
    params = Params(workers=0, protocol=Protocol(splits=4, test_share=0.25))
    found = accuracies(table, [telling, deep], params)
    assert found["telling"]["mean"] > 0.75
    assert found["deep"]["mean"] < 0.65
    for interval in found.values():
        assert interval["low"] <= interval["mean"] <= interval["high"]
        assert interval["low"] < interval["high"]
    assert accuracies(table, [telling, deep], params) == found
