"""A fragment holds what the environments showed, what was done and what came of it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.rl import agents, training
from models.rl.algorithms.base import AgentAlgorithm
from models.rl.fragment import Fragment
from models.rl.known import Recall


@pytest.fixture
def algorithm():
    params = agents.settings("recall", {"num_envs": 5, "env": {"delay": 2}})
    found = training.start("recall", params)
    yield found
    found.stop()


def test_rows_are_what_happened(algorithm):
    runner = algorithm.runner
    found = runner.sample(rows=20, chunk=5)
    env = Recall(5, delay=2)
    seed = np.random.default_rng([algorithm.settings["seed"], 0, 0]).integers(1 << 31)
    env.reset(int(seed))
    for t in range(20):
        assert (found.observations[t] == env.observations).all()
        env.step(found.actions[t])
        assert (found.rewards[t] == env.rewards.sum(1)).all()
        assert (found.own[t] == env.rewards).all()
        assert (found.terminated[t] == env.terminated).all()
        assert (found.over[t] == env.started).all()
    assert found.fresh
    assert not runner.sample().fresh
    # Three steps and the row that begins the next, five times in 20 rows.
    assert found.lengths == [3] * 25
    assert sorted(set(found.lanes)) == [0, 1, 2, 3, 4]
    assert sum(found.returns) == found.rewards.sum()
    assert found.steps == 5 * 15


def test_states_and_values_are_those_of_the_network_going_through_the_rows(algorithm):
    module = algorithm.learner.agent
    torch.nn.init.normal_(module.net.actor.weight)
    found = algorithm.runner.sample(rows=20, chunk=5)
    over = torch.from_numpy(found.over)
    shown, mask = torch.from_numpy(found.observations), torch.from_numpy(found.mask)
    seen = module.standardise(shown, mask).transpose(0, 1)
    zero = torch.zeros(5, module.cells)
    with torch.no_grad():
        logits, values = module.windows(seen, over.T, (zero, zero))
    assert np.allclose(values.T, found.values[:-1], atol=1e-5)
    odds = logits.log_softmax(-1).transpose(0, 1)
    chosen = odds.gather(-1, torch.from_numpy(found.actions)[..., None])[..., 0, 0]
    assert np.allclose(chosen, found.logp, atol=1e-5)
    assert (found.states["h"][0] == 0).all()
    assert found.states["h"].shape == (4, 5, module.cells)
    # A window that begins in the middle goes on with the state that it had.
    again = {k: torch.from_numpy(v[1]) for k, v in found.states.items()}
    with torch.no_grad():
        later = module.windows(seen[:, 5:10], over.T[:, 5:10], (again["h"], again["c"]))[1]
    assert np.allclose(later.T, found.values[5:10], atol=1e-5)


def test_it_goes_on_from_its_place(algorithm):
    runner = algorithm.runner
    runner.sample(rows=7)
    place = runner.get_place()
    one = runner.sample(rows=9)
    runner.set_place(place)
    other = runner.sample(rows=9)
    for name in ("observations", "actions", "rewards", "over", "values"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.returns == other.returns
    assert not other.fresh


def test_runners_have_episodes_of_their_own(algorithm):
    from models.rl.runner import BatchRunner

    found = []
    for number, steps in ((1, 0), (2, 0), (1, 500)):
        runner = BatchRunner(config=algorithm.config, worker_index=number, num_workers=2)
        runner.module = algorithm.learner.agent
        runner.num_env_steps_sampled_lifetime = steps
        found.append(runner.sample(rows=30).observations)
        runner.stop()
    assert not np.array_equal(found[0], found[1])
    # One that was replaced doesn't begin with the episodes of the one before.
    assert not np.array_equal(found[0], found[2])


def test_rows_after_a_lost_fragment_do_not_follow_the_ones_before():
    lost = [None, Fragment.empty(0, False, 1, (1, 1, 1)), Fragment.empty(0, False, 1, (1, 1, 1))]
    told = SimpleNamespace(
        runner=SimpleNamespace(sample=lambda: lost.pop(0)), _missed=set(),
        _count=lambda fragment: None, _watch=lambda found: None,
    )  # fmt: skip
    found = [AgentAlgorithm.gather(told)[0] for _ in range(3)]
    assert [one and one.fresh for one in found] == [None, True, False]
