"""Batches: the same numbers for every number of environments and threads, and after a restart."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from data.errors import UserError
from data.netsim.scenario import Scenario
from models.envs import macc, nuwa_twin, tcco
from models.envs.batch import BatchEnv
from models.envs.macc import MaccBatch, MaccParams
from models.envs.nuwa import NuwaBatch, NuwaParams
from models.envs.tcco import TccoBatch, TccoEnv, TccoParams
from models.envs.vector import BatchVectorEnv

pytestmark = pytest.mark.xdist_group("netsim")

PARAMS = TccoParams(steps=12, context=2, start_intervals=5, subflows=3)


def sampler(rng: np.random.Generator) -> Scenario:
    """One to three subflows, and another connection beside them."""
    links: dict[str, Any] = {"back": {"delay_ms": 5.0}}
    for k in range(int(rng.integers(1, 4))):
        rate = float(rng.uniform(2.0, 10.0))
        links[f"p{k}"] = {"rate_mbps": rate, "delay_ms": 5.0, "queue_packets": 20, "loss": 0.01}
    paths = [{"forward": [name], "back": ["back"]} for name in links if name != "back"]
    flows = [{"name": "m", "paths": paths}, {"name": "x", "cc": "cubic", "paths": paths[:1]}]
    return Scenario.parse({"links": links, "flows": flows}, "test")


def single(rng: np.random.Generator) -> Scenario:
    """One path for Nuwa."""
    rate = float(rng.uniform(2.0, 8.0))
    links = {"a": {"rate_mbps": rate, "delay_ms": 10.0, "queue_packets": 40}, "b": {"delay_ms": 10}}
    flow = {"name": "n", "paths": [{"forward": ["a"], "back": ["b"]}], "target_delay_ms": 30.0}
    return Scenario.parse({"links": links, "flows": [flow]}, "test")


def team(rng: np.random.Generator) -> Scenario:
    """One to three senders; the second router isn't always there."""
    queue = "agent" if rng.random() < 0.5 else "droptail"
    links = {
        "core": {"rate_mbps": 6.0, "delay_ms": 10.0, "queue_packets": 40, "queue": "agent"},
        "core_back": {"rate_mbps": 6.0, "delay_ms": 10.0, "queue": queue},
    }
    path = {"forward": ["core"], "back": ["core_back"]}
    flows = [{"name": "s", "count": int(rng.integers(1, 4)), "paths": [path]},
             {"name": "other", "cc": "cubic", "paths": [path]}]  # fmt: skip
    return Scenario.parse({"links": links, "flows": flows}, "test")


def make(kind: str, num_envs: int, threads: int = 1) -> Any:
    if kind == "tcco":
        return TccoBatch(num_envs, sampler, params=PARAMS, threads=threads)
    if kind == "nuwa":
        params = NuwaParams(steps=12, start_intervals=5)
        return NuwaBatch(num_envs, single, params=params, threads=threads)
    return MaccBatch(num_envs, team, params=MaccParams(steps=12), threads=threads)


def play(batch: BatchEnv, steps: int, of: int, begin: int = 0) -> list[Any]:
    """What an environment gives; its actions don't depend on how many others there are."""
    rows = []
    for k in range(begin, begin + steps):
        counts = np.array([batch.action_counts[kind] for kind in batch.kinds])
        every = np.random.default_rng(k).integers(0, 1 << 30, (64, len(counts)))
        batch.step((every % counts)[: batch.num_envs])
        names = ("observations", "mask", "rewards", "terminated", "truncated", "started")
        rows.append({name: getattr(batch, name)[of].copy() for name in names})
    return rows


def same(a: list[Any], b: list[Any]) -> bool:
    return all(np.array_equal(x[name], y[name]) for x, y in zip(a, b, strict=True) for name in x)


@pytest.mark.parametrize("kind", ["tcco", "nuwa", "macc"])
def test_an_environment_is_the_same_among_any_number_and_in_threads(kind: str) -> None:
    few, many = make(kind, 3), make(kind, 6, threads=3)
    for batch in (few, many):
        batch.reset(9)
    expected = play(few, 40, of=2)
    assert same(expected, play(many, 40, of=2))
    begun = [k for k, row in enumerate(expected) if row["started"]]
    assert np.diff(begun).tolist() == [13] * (len(begun) - 1)
    assert len(begun) >= 2
    assert len({row["observations"].tobytes() for row in expected}) > 10
    rewards = np.array([row["rewards"] for row in expected])
    assert len(set(rewards[rewards != 0].tolist())) > 5
    other = make(kind, 3)
    other.reset(10)
    assert not same(expected, play(other, 40, of=2))
    many.close()


@pytest.mark.parametrize("kind", ["tcco", "nuwa", "macc"])
def test_a_batch_goes_on_where_another_was_saved(kind: str) -> None:
    whole, resumed = make(kind, 4, threads=3), make(kind, 4, threads=3)
    whole.reset(3)
    play(whole, 17, of=0)
    state = whole.get_state()
    expected = play(whole, 30, of=1, begin=17)
    # Episodes of another seed, which are made ahead, are none of the restored ones.
    resumed.reset(5)
    play(resumed, 10, of=0)
    resumed.set_state(state)
    assert same(expected, play(resumed, 30, of=1, begin=17))


def test_a_mistake_in_a_scenario_waits_for_the_threads() -> None:
    """They write to a batch's arrays: nothing may be freed or begun anew before they are done."""
    calls = []

    def sampler_that_fails(rng: np.random.Generator) -> Scenario:
        calls.append(1)
        if len(calls) > 8:
            raise UserError("no more scenarios")
        return sampler(rng)

    batch = TccoBatch(8, sampler_that_fails, params=PARAMS, threads=3)
    with pytest.raises(UserError, match="no more scenarios"):
        batch.reset(1)
    assert batch._shares.through[0] == 2
    assert not batch.phase.any()
    batch.close()


def test_parts_that_are_not_there_are_masked() -> None:
    batch = make("tcco", 8)
    batch.reset(1)
    seen, seen_by = set(), []
    for _ in range(30):
        batch.step(np.full((8, 3), 2))
        for i in range(8):
            there = batch.mask[i]
            seen.add(int(there.sum()))
            assert there[0]
            assert not batch.observations[i, ~there].any()
            assert not batch.rewards[i, ~there].any()
        seen_by.append(batch.observations[:, 0].any(axis=1))
    assert seen == {1, 2, 3}
    # Where the handshake's packet is lost there is nothing to see for a second.
    assert np.mean(seen_by) > 0.8


def test_first_episodes_end_one_by_one() -> None:
    batch = make("tcco", 8)
    batch.reset(1)
    ends = []
    for k in range(12):
        batch.step(np.full((8, 3), 2))
        ends += [(i, k) for i in np.flatnonzero(batch.truncated)]
    lengths = sorted(k for _, k in ends)
    assert len(set(lengths)) >= 6
    assert {i for i, _ in ends} == set(range(8))


def test_actions_that_there_are_not_are_refused() -> None:
    batch = make("macc", 2)
    with pytest.raises(UserError, match="call reset first"):
        batch.step(np.zeros((2, 5), np.int64))
    batch.reset(1)
    with pytest.raises(ValueError, match="doesn't have"):
        batch.step(np.full((2, 5), 3))


def test_a_batch_of_one_is_the_environment() -> None:
    params = PARAMS.model_copy(update={"subflows": 1})

    def narrow(rng: np.random.Generator) -> Scenario:
        spec = sampler(rng)
        flow = spec.flows[0].model_copy(update={"paths": spec.flows[0].paths[:1]})
        return spec.model_copy(update={"flows": [flow, *spec.flows[1:]]})

    env = TccoEnv(narrow, params=params)
    env.reset(seed=4)
    seed = int(np.random.default_rng(4).integers(1 << 31))
    batch = TccoBatch(1, narrow, params=params, stagger=False)
    batch.reset(seed)
    for k in range(12):
        observation, reward, _, truncated, _ = env.step(np.array([k % 5]))
        batch.step(np.array([[k % 5]]))
        assert np.array_equal(observation[-1], batch.observations[0])
        assert reward == batch.rewards[0].sum()
        assert truncated == batch.truncated[0]


@pytest.mark.parametrize("family", [tcco, nuwa_twin, macc])
def test_plain_settings_make_a_batch(family: Any) -> None:
    made = family.batch(2, 1, {"params": {"steps": 7}})
    made.reset(0)
    assert made.steps == 7
    assert made.observations[made.mask].any()
    with pytest.raises(UserError, match="wireles"):
        family.batch(2, 1, {"sampler": "wireles"})
    with pytest.raises(UserError, match="did you mean 'reward'"):
        family.batch(2, 1, {"rewards": {}})


def test_settings_may_be_a_plain_dict_and_unknown_ones_are_refused() -> None:
    assert TccoEnv(sampler, params=PARAMS.model_dump()).params == PARAMS
    with pytest.raises(UserError, match="did you mean 'steps'"):
        TccoEnv(sampler, params={"step": 12})


def test_gymnasium_makes_them() -> None:
    two = PARAMS.model_copy(update={"subflows": 2})
    envs = gymnasium.make_vec("models.envs:cczoo/TCCO-v0", 2, sampler=wide, params=two)
    observation, _ = envs.reset(seed=1)
    assert isinstance(envs.unwrapped, BatchVectorEnv)
    assert observation.shape == (2, 2, 2, 6)
    assert envs.observation_space.contains(observation)
    observation, rewards, _, _, infos = envs.step(envs.action_space.sample())
    assert rewards.shape == (2,)
    assert (infos["time_us"] > 0).all()
    with pytest.raises(UserError, match="one seed"):
        envs.reset(seed=[1, 2])
    envs.close()
    envs = gymnasium.make_vec("models.envs:cczoo/Nuwa-v0", 2, sampler=single)
    observation, _ = envs.reset(seed=1)
    assert observation.shape == (2, 8, 7)
    envs.close()


def wide(rng: np.random.Generator) -> Scenario:
    """Two subflows."""
    links = {name: {"rate_mbps": 4.0, "delay_ms": 5.0, "queue_packets": 20} for name in "ab"}
    paths = [{"forward": [name], "back": ["a"]} for name in "ab"]
    return Scenario.parse({"links": links, "flows": [{"name": "m", "paths": paths}]}, "test")


def test_actions_of_an_environment_that_begins_anew_are_ignored() -> None:
    batch = make("tcco", 2)
    batch.reset(1)
    while not batch.truncated.any():
        batch.step(np.full((2, 3), 2))
    actions = np.where(batch.truncated[:, None], -1, np.full((2, 3), 2))
    batch.step(actions)
    assert batch.started.any()
