"""Nuwa's rewards less a twin's: pairs stay pairs, and judging takes nothing off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from data.errors import UserError
from data.netsim.scenario import Scenario
from models.envs.nuwa import NuwaBatch
from models.envs.nuwa_twin import TwinNuwaBatch, batch
from models.envs.samplers import wireless
from models.envs.scripted import at_random, nuwa_hold, with_k
from models.rl import agents
from models.rl.judge import greedy_returns
from models.rl.training import start

pytestmark = pytest.mark.xdist_group("netsim")

STEPS = 12
SETTINGS: dict[str, Any] = {"params": {"steps": STEPS}, "twin_k": 3.0}


def played(env: NuwaBatch, policy: Any, steps: int) -> NDArray[np.float64]:
    """Rewards, ends and observations, [steps, ...] in one row each."""
    rows = []
    for _ in range(steps):
        env.step(policy(env))
        parts = (env.rewards, env.terminated, env.truncated, env.started, env.observations)
        rows.append(np.concatenate([part.ravel() for part in parts]))
    return np.array(rows)


def test_a_policy_that_keeps_the_twins_k_gets_nothing() -> None:
    env = TwinNuwaBatch(4, with_k(wireless, 3.0), 3.0, params={"steps": STEPS}, threads=1)
    env.reset(5)
    for _ in range(3 * STEPS):
        env.step(nuwa_hold(env))
        assert (env.rewards == 0.0).all()
        assert np.array_equal(env.started, env.twin.started)
    assert (env.episodes > 2).all()
    env.close()


def test_the_reward_is_the_difference_to_the_twins_and_nothing_else_changes() -> None:
    env = batch(4, 1, SETTINGS)
    one = NuwaBatch(4, wireless, params={"steps": STEPS}, threads=1)
    other = NuwaBatch(4, with_k(wireless, 3.0), params={"steps": STEPS}, threads=1)
    for made in (env, one, other):
        made.reset(5)
    first, again = at_random(2), at_random(2)
    differed = False
    for _ in range(3 * STEPS):
        env.step(first(env))
        one.step(again(one))
        other.step(nuwa_hold(other))
        assert np.array_equal(env.rewards, one.rewards - other.rewards)
        assert np.array_equal(env.observations, one.observations)
        assert np.array_equal(env.truncated, one.truncated)
        assert (env.rewards[env.started] == 0.0).all()
        differed |= bool(env.rewards.any())
    assert differed


def test_a_saved_pair_goes_on_to_the_bit() -> None:
    env, policy = batch(4, 1, SETTINGS), at_random(2)
    env.reset(5)
    played(env, policy, STEPS + 3)
    state = env.get_state()
    more = played(env, at_random(3), 2 * STEPS)
    other = batch(4, 1, SETTINGS)
    other.reset(9)
    other.set_state(state)
    assert np.array_equal(played(other, at_random(3), 2 * STEPS), more)


def finite(rng: np.random.Generator) -> Scenario:
    """A flow that arrives within seconds, the sooner the larger k is."""
    tree = {
        "links": {
            "cell": {"rate_mbps": 20.0, "delay_ms": 20.0, "queue_packets": 200, "loss": 0.005},
            "back": {"delay_ms": 20.0},
        },
        "flows": [{"name": "f", "target_delay_ms": 60.0, "size_bytes": 8_000_000,
                   "paths": [{"forward": ["cell"], "back": ["back"]}]}],
    }  # fmt: skip
    return Scenario.parse(tree, "test")


@pytest.mark.parametrize(("own", "twins"), [(1.0, 9.0), (9.0, 1.0)])
def test_a_pair_begins_anew_together_whoever_arrives_first(own: float, twins: float) -> None:
    env = TwinNuwaBatch(2, with_k(finite, own), twins, params={"steps": 300}, threads=1)
    env.reset(1)
    alone = waited = 0
    for _ in range(300):
        arrived = env.twin.terminated & ~(env.terminated | env.truncated)
        env.step(nuwa_hold(env))
        assert np.array_equal(env.started, env.twin.started)
        assert np.array_equal(env.episodes, env.twin.episodes)
        alone += int(arrived.sum())
        waited += int((env.terminated & ~env.twin.terminated).sum())
    assert (env.episodes > 2).all()
    assert (alone if own < twins else waited) > 0


def test_judging_takes_no_twin_off() -> None:
    found = []
    for twin in ({}, {"twin_k": 3.0}):
        env = {"params": {"steps": STEPS}, **twin}
        changes = {"num_envs": 2, "rows": 20, "env": env}
        algorithm = start("nuwa", agents.settings("nuwa", changes))
        try:
            found.append(greedy_returns(algorithm, 4, seed=11))
        finally:
            algorithm.stop()
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("k", [0.5, 9.5])
def test_a_twins_k_is_in_ks_range(k: float) -> None:
    with pytest.raises(UserError, match="twin_k"):
        batch(1, 1, {"twin_k": k})
