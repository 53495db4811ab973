"""The network that was best in validation is kept, judged and played."""

import random

import numpy as np
import pytest
import torch

from data.errors import UserError
from models.rl import agents, best, checkpoint, policy, training
from models.rl.judge import greedy_returns
from models.rl.known import Matrix

CASE = {
    "steps": 2_000, "num_envs": 16, "epsilon_steps": 1_000, "learning_starts": 200,
    "warmup": 500, "batch": 32, "rate": 3e-3, "report_every": 100, "validate_every": 400,
}  # fmt: skip


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


def looks(found):
    return [(point["steps"], point["validation"]) for point in found.curve if "validation" in point]


def test_the_best_of_all_looks_is_kept(tmp_path):
    found = training.train("matrix", agents.settings("matrix", CASE), tmp_path, judge=8)
    seen = looks(found)
    assert len(seen) == 5, "every 400 steps, the last one at the end"
    assert (found.best_steps, max(value for _, value in seen)) in seen
    tree = checkpoint.read(found.checkpoint)
    assert tree["run"]["kept"][:2] == [found.best_steps, max(value for _, value in seen)]
    assert np.mean(found.judged) > 0.9 * 5 * Matrix.BEST


def test_a_worse_network_does_not_take_its_place(monkeypatch, tmp_path):
    values = iter([1.0, 3.0, 2.0, 3.0, 0.0])
    kept = {}

    def judged(algorithm, episodes, seed):
        network = best.acting(algorithm.learner.agent.state_dict())
        kept[algorithm.steps] = {name: value.numpy().copy() for name, value in network.items()}
        return np.array([next(values)])

    monkeypatch.setattr(best, "greedy_returns", judged)
    judged_with = []

    def at_the_end(algorithm, episodes, seed, module, test):
        assert test
        judged_with.append(algorithm.best.steps if module is not algorithm.learner.agent else 0)
        weights = {name: value.numpy() for name, value in module.state_dict().items()}
        assert same(weights, kept[algorithm.best.steps])
        return np.zeros(episodes)

    monkeypatch.setattr(training, "greedy_returns", at_the_end)
    found = training.train("matrix", agents.settings("matrix", CASE), tmp_path, judge=4)
    second = sorted(kept)[1]
    assert found.best_steps == second
    network = checkpoint.read(found.checkpoint)["best"]
    assert same(network, kept[second])
    played = policy.kept(tmp_path)[2].state_dict()
    assert same({name: value.numpy() for name, value in played.items()}, kept[second])
    assert not same(network, kept[max(kept)]), "the last one is another"
    assert judged_with == [second], "what is judged at the end is the best one, too"


def test_none_is_kept_where_none_is_asked_for(tmp_path):
    params = agents.settings("matrix", CASE | {"validate_every": 0, "steps": 400})
    found = training.train("matrix", params, tmp_path)
    assert looks(found) == []
    assert found.best_steps == 0
    assert checkpoint.read(found.checkpoint)["best"] == {}


def test_validation_changes_nothing_of_the_training(tmp_path):
    last = []
    for every in (0, 400):
        params = agents.settings("matrix", CASE | {"validate_every": every, "steps": 800})
        found = training.train("matrix", params, tmp_path / str(every))
        last.append(checkpoint.read(found.checkpoint)["network"])
    assert all(np.array_equal(last[0][name], last[1][name]) for name in last[0])


def test_judging_leaves_the_processs_generators_alone():
    algorithm = training.start("matrix", agents.settings("matrix", CASE))

    def state():
        return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()  # noqa: NPY002

    try:
        algorithm.train()
        before = state()
        one = greedy_returns(algorithm, 4, 5)
        assert state() == before
        assert (greedy_returns(algorithm, 4, 6) != one).any(), "episodes are those of the seed"
        algorithm.best.look(algorithm, last=True)
        algorithm.best.module(algorithm)
        assert state() == before
    finally:
        algorithm.stop()


@pytest.mark.parametrize("name", ["matrix", "recall"])
def test_a_kept_network_plays_as_it_was_judged(name, tmp_path):
    more = {"rows": 20, "window": 10} if name == "recall" else {}
    case = {key: value for key, value in CASE.items() if name == "matrix" or key in {"steps"}}
    settings = agents.settings(name, case | more | {"steps": 800, "num_envs": 8})
    algorithm = training.start(name, settings)
    try:
        while algorithm.steps < settings.steps:
            algorithm.train()
        algorithm.best.look(algorithm, last=True)
        training.save(algorithm, name, settings, tmp_path)
        expected = greedy_returns(algorithm, 8, 5)
        batch = algorithm.runner.env.__class__(8)
        rng = np.random.default_rng([5, 0, 0])
    finally:
        algorithm.stop()
    agent, params, module = policy.kept(tmp_path)
    assert (agent, params.num_envs) == (name, 8)
    batch.reset(int(rng.integers(1 << 31)))
    act, total, over = policy.Greedy(module), np.zeros(8), np.zeros(8, bool)
    while not over.all():
        batch.step(act(batch))
        total += np.where(over, 0.0, batch.rewards.sum(axis=1))
        over |= batch.terminated | batch.truncated
    assert total.tolist() == expected.tolist()


def test_a_folder_without_a_training_is_refused(tmp_path):
    with pytest.raises(UserError, match="no checkpoint: name a folder"):
        policy.kept(tmp_path)
