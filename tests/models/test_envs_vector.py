"""Environments in threads: the same numbers as one after the other."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from data.errors import UserError
from data.netsim.scenario import Scenario
from models.envs.macc import MaccParams, parallel_env
from models.envs.tcco import TccoEnv, TccoParams
from models.envs.teams import Teams
from models.envs.vector import ThreadVectorEnv

pytestmark = pytest.mark.xdist_group("netsim")

PARAMS = TccoParams(steps=12, context=2, start_intervals=5)


def sampler(rng: np.random.Generator) -> Scenario:
    rate = float(rng.uniform(2.0, 10.0))
    links = {
        "a": {"rate_mbps": rate, "delay_ms": 5.0, "queue_packets": 20, "loss": 0.01},
        "b": {"rate_mbps": 5.0, "delay_ms": 10.0, "queue_packets": 20},
        "back": {"delay_ms": 5.0},
    }
    paths = [{"forward": [name], "back": ["back"]} for name in "ab"]
    return Scenario.parse({"links": links, "flows": [{"name": "m", "paths": paths}]}, "test")


def makers(count: int) -> list[Any]:
    return [lambda: TccoEnv(sampler, params=PARAMS)] * count


def test_settings_may_be_a_plain_dict_and_unknown_ones_are_refused() -> None:
    assert TccoEnv(sampler, params=PARAMS.model_dump()).params == PARAMS
    with pytest.raises(UserError, match="did you mean 'steps'"):
        TccoEnv(sampler, params={"step": 12})


def test_threads_give_what_a_loop_gives_over_several_episodes() -> None:
    threads, loop = ThreadVectorEnv(makers(4), threads=3), SyncVectorEnv(makers(4))
    rng = np.random.default_rng(0)
    first, _ = threads.reset(seed=9)
    second, _ = loop.reset(seed=9)
    assert np.array_equal(first, second)
    ended = 0
    for _ in range(30):
        actions = rng.integers(0, 5, (4, 2))
        mine, theirs = threads.step(actions), loop.step(actions)
        for a, b in zip(mine[:4], theirs[:4], strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(mine[4]["time_us"], theirs[4]["time_us"])
        ended += int(mine[3].sum())
    assert ended == 8
    assert not np.array_equal(mine[0][0], mine[0][1])
    threads.close()
    loop.close()


def test_gymnasium_makes_them() -> None:
    envs = gymnasium.make_vec("models.envs:cczoo/TCCO-v0", 2, sampler=sampler, params=PARAMS)
    observation, _ = envs.reset(seed=1)
    assert isinstance(envs.unwrapped, ThreadVectorEnv)
    assert observation.shape == (2, 2, 2, 6)
    envs.close()


def test_seeds_may_be_given_one_by_one() -> None:
    envs = ThreadVectorEnv(makers(2))
    observation, _ = envs.reset(seed=[4, 4])
    assert np.array_equal(observation[0], observation[1])
    envs.close()


def test_teams_in_threads_are_what_each_is_alone() -> None:
    params = MaccParams(steps=3, start_intervals=2)
    teams, alone = Teams(2, threads=2, params=params), parallel_env(params=params)
    rng = np.random.default_rng(0)
    sizes = {a: int(alone.action_space(a).n) for a in teams.possible_agents}
    actions = [{a: rng.integers(0, n, 2) for a, n in sizes.items()} for _ in range(5)]
    observations, _ = teams.reset(seed=4)
    steps = [teams.step(one) for one in actions]
    assert [over.tolist() for _, _, over, _ in steps] == [[k == 2] * 2 for k in range(5)]
    expected, _ = alone.reset(seed=5)
    for k, one in enumerate(actions):
        for agent, values in expected.items():
            assert np.array_equal(observations[agent][1], values), (k, agent)
        observations, rewards, _, infos = steps[k]
        if k == 3:  # the step after an episode's end begins the next
            expected, _ = alone.reset()
            paid = dict.fromkeys(sizes, 0.0)
        else:
            expected, paid, *_ = alone.step({a: v[1] for a, v in one.items()})
        assert {a: float(v[1]) for a, v in rewards.items()} == paid
        assert set(infos[1]) == set(sizes)
    teams.close()
