"""Ranges that widen from episode to episode while an agent trains."""

from __future__ import annotations

import numpy as np
import pytest

from data.errors import UserError
from models.envs.curriculum import Curriculum, Narrow, generator
from models.envs.nuwa_twin import batch
from models.envs.samplers import mixed_paths, wireless
from models.rl import agents
from models.rl.agents import AGENTS
from models.rl.comparisons.lines import COMPARISONS
from models.rl.judge import greedy_returns
from models.rl.training import start


def rates(sampler, curriculum, episode, count=200):
    drawn = [sampler(generator([1, i, episode], curriculum, episode)) for i in range(count)]
    return np.array([next(iter(spec.links.values())).steps[0][1] for spec in drawn])


def test_ranges_are_narrow_at_first_and_whole_in_the_end() -> None:
    curriculum = Curriculum(episodes=4, first=0.25)
    first, later = (rates(mixed_paths, curriculum, episode) for episode in (0, 4))
    low, high = np.exp(np.log(100) - np.log(5) / 4), np.exp(np.log(100) + np.log(5) / 4)
    assert low <= first.min() < 1.1 * low
    assert 0.9 * high < first.max() <= high
    assert later.min() < 25
    assert later.max() > 400
    np.testing.assert_array_equal(later, rates(mixed_paths, None, 4))


def test_it_widens_evenly_and_stays_whole() -> None:
    curriculum = Curriculum(episodes=3, first=0.1)
    assert [curriculum.breadth(k) for k in range(5)] == pytest.approx([0.1, 0.4, 0.7, 1.0, 1.0])


def test_choices_among_numbers_begin_with_the_first() -> None:
    narrow = Narrow(np.random.PCG64(1), 0.5)
    assert {float(narrow.choice([0.0, 0.1, 0.2, 0.3])) for _ in range(100)} == {0.0, 0.1}
    assert {str(narrow.choice(["a", "b", "c", "d"])) for _ in range(100)} == {"a", "b", "c", "d"}


def test_gentlest_losses_come_first_in_training() -> None:
    curriculum = Curriculum(episodes=2, first=0.5)
    drawn = [wireless(generator([2, i, 0], curriculum, 0)) for i in range(50)]
    assert {spec.links["cell"].loss for spec in drawn} == {0.0}


def test_a_batch_widens_by_its_own_episodes_and_goes_on_where_it_was() -> None:
    settings = {"curriculum": {"episodes": 2, "first": 0.0}, "params": {"steps": 3}}
    one, other = (batch(2, 1, settings) for _ in range(2))
    one.reset(5)
    # With no breadth at all everything is the middle of its range.
    drawn = [network.scenario.flows[0].target_delay_ms for network in one.networks]
    assert drawn == pytest.approx([np.sqrt(10.0 * 200.0)] * 2)
    hold = np.ones((2, 1), np.int64)
    for _ in range(5):
        one.step(hold)
    other.reset(0)
    other.set_state(one.get_state())
    for _ in range(6):
        one.step(hold)
        other.step(hold)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.rewards, other.rewards)
    assert len({network.scenario.flows[0].target_delay_ms for network in one.networks}) == 2


def ends(shortest: int | None, steps: int = 200, lanes: int = 16) -> list[int]:
    """Lengths of a batch's first two episodes in each environment."""
    one = batch(lanes, 1, {"shortest": shortest, "params": {"steps": steps}})
    one.reset(5)
    found = [one.lengths.tolist()]
    one.terminated[:] = True
    one.step(np.ones((lanes, 1), np.int64))
    return [*found[0], *one.lengths.tolist()]


def test_lengths_of_episodes_are_drawn_evenly_over_their_logarithm() -> None:
    found = np.array(ends(20))
    assert found.min() >= 20
    assert found.max() <= 200
    assert len(set(found.tolist())) > 20
    # Half of them are shorter than the geometric mean, which is well below the middle.
    assert 8 <= (found < np.sqrt(20 * 200)).sum() <= 24
    assert found.tolist() == ends(20)
    assert set(ends(None)[16:]) == {200}


def test_judging_draws_from_whole_ranges_and_plays_whole_episodes() -> None:
    for name in ("curriculum", "shortest"):
        assert all(name in line.training_only for line in (AGENTS | COMPARISONS).values())
    found = []
    for more in ({}, {"curriculum": {"episodes": 9, "first": 0.0}, "shortest": 2}):
        changes = {"num_envs": 2, "rows": 20, "env": {"params": {"steps": 12}, **more}}
        algorithm = start("nuwa", agents.settings("nuwa", changes))
        try:
            found.append(greedy_returns(algorithm, 4, seed=11))
        finally:
            algorithm.stop()
    np.testing.assert_array_equal(found[0], found[1])
    # In the middle of all ranges only the streams of chance would tell the episodes apart.
    assert len(set(found[1].round(3))) == 4


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UserError, match="episodes"):
        batch(1, 1, {"curriculum": {"episodes": 0}})
    with pytest.raises(UserError, match="shortest: 30 steps, but an episode has 20 at most"):
        batch(1, 1, {"shortest": 30, "params": {"steps": 20}})
