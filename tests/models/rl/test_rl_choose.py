"""Actions are chosen with the odds that were asked for."""

import numpy as np
import pytest

from models.rl import choose
from models.rl.layout import Layout

LAYOUT = Layout(kinds=(0, 1), action_counts=(3, 2), feature_counts=(1, 1), context=1)
SCORES = np.array([[[0.0, 5.0, 1.0], [2.0, 0.0, -np.inf]]], np.float32).repeat(40_000, 0)


def shares(actions):
    return [np.bincount(actions[:, part], minlength=3) / len(actions) for part in range(2)]


def test_random_actions_keep_to_the_weights_and_to_what_a_part_has():
    table = choose.odds(LAYOUT, {1: [0.98, 0.02]})
    first, second = shares(choose.mostly_best(SCORES, 1.0, table, np.random.default_rng(0)))
    assert first == pytest.approx([1 / 3] * 3, abs=0.01)
    assert second == pytest.approx([0.98, 0.02, 0.0], abs=0.003)


def test_a_share_of_the_actions_is_random():
    table = choose.odds(LAYOUT, {})
    first, second = shares(choose.mostly_best(SCORES, 0.3, table, np.random.default_rng(0)))
    assert first == pytest.approx([0.1, 0.8, 0.1], abs=0.01)
    assert second == pytest.approx([0.85, 0.15, 0.0], abs=0.01)
    assert (choose.mostly_best(SCORES, 0.0, table, np.random.default_rng(0)) == [1, 0]).all()


def test_logits_are_drawn_by_their_softmax_and_the_odds_are_told():
    actions, logp = choose.sampled(SCORES, np.random.default_rng(0))
    odds = np.exp(SCORES[0]) / np.exp(SCORES[0]).sum(1, keepdims=True)
    for part, found in enumerate(shares(actions)):
        assert found == pytest.approx(odds[part], abs=0.01)
    told = np.log(np.take_along_axis(odds, actions[0][:, None], 1)[:, 0])
    assert logp[0] == pytest.approx(told, abs=1e-6)


def test_weights_for_another_number_of_actions_are_refused():
    with pytest.raises(ValueError, match="kind 1 has 2 actions, not 3"):
        choose.odds(LAYOUT, {1: [1, 1, 1]})
