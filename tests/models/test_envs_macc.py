"""cczoo/MACC-v0: PettingZoo's checkers, equations 1 to 3, and its log against what it saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from data.errors import UserError
from data.netsim.readings import link_waiting
from data.store import iter_connections
from features import macc
from features.intervals import observations
from models.envs.macc import MaccBatch, MaccParams, MaccReward, parallel_env
from models.envs.macc_scenarios import greedy_neighbours
from models.envs.samplers import fixed, named

pytestmark = pytest.mark.xdist_group("netsim")

HOLD = {"sender_0": 2, "sender_1": 2, "sender_2": 2, "router_0": 0, "router_1": 0}


def act(**changes: int) -> dict[str, np.int64]:
    return {agent: np.int64(action) for agent, action in {**HOLD, **changes}.items()}


def test_the_checkers_pass() -> None:
    parallel_api_test(parallel_env(params=MaccParams(steps=20)), num_cycles=60)
    parallel_seed_test(lambda: parallel_env(params=MaccParams(steps=20)), num_cycles=30)


def test_agents_and_spaces_are_those_of_the_paper() -> None:
    env = parallel_env()
    assert env.possible_agents == list(HOLD)
    assert [env.action_space(a).n for a in env.possible_agents] == [3, 3, 3, 2, 2]
    assert {env.observation_space(a).shape for a in env.possible_agents} == {(3,)}
    assert env.params.observation.interval_us == 200_000


def test_windows_move_by_one_segment_and_not_below_one() -> None:
    env = parallel_env(params=MaccParams(start_cwnd=8, step_segments=1))
    _, infos = env.reset(seed=1)
    before = [infos[f"sender_{i}"]["target_cwnd"] for i in range(3)]
    *_, infos = env.step(act(sender_0=0, sender_1=1))
    after = [infos[f"sender_{i}"]["target_cwnd"] for i in range(3)]
    assert np.subtract(after, before).tolist() == [1, -1, 0]
    for _ in range(before[1] + 5):
        *_, infos = env.step(act(sender_1=1))
    assert infos["sender_1"]["target_cwnd"] == 1


def test_a_router_that_drops_stops_what_passes() -> None:
    env = parallel_env()
    env.reset(seed=1)
    for _ in range(10):
        env.step(act())
    _, rewards, *_ = env.step(act(router_0=1))
    *_, infos = env.step(act(router_0=1))
    assert infos["router_0"]["observation"][macc.DEQUEUED] == 0.0
    assert rewards["router_0"] < 0.0
    for _ in range(3):
        *_, infos = env.step(act())
    assert infos["router_0"]["observation"][macc.DEQUEUED] > 0.0


def test_the_rewards_are_equation_3() -> None:
    reward = MaccReward(a=1, b=2, c=3, d=1, e=2, f=3, g=4)
    assert reward.sender(np.array([100.0, 10.0, 1.0])) == 100 - 20 - 3
    assert reward.router(np.array([5.0, 100.0, 10.0]), 0.5) == 100 - 20 - 15 - 2


def test_full_use_without_a_queue_is_better_than_half_and_than_a_queue() -> None:
    """The windows that share 30 Mbps x 280 ms, half of them, and as much again as they hold."""
    reward, scores = MaccReward(), []
    for share, wait_us in ((0.5, 0), (1.0, 0), (1.0, 100_000)):
        rtt = 280_000 + wait_us
        acked = share * 1.25e6 * 0.2
        sender = reward.sender(np.array([acked, acked / 0.2 * rtt / 1e6, rtt]))
        queue = wait_us * 30 / 8 / 1500
        router = reward.router(np.array([queue, share * 2500, wait_us]), 0.0)
        scores.append(3 * sender + router)
    assert scores[1] == max(scores)


def test_a_log_read_back_gives_the_observations_that_the_agents_saw(tmp_path: Path) -> None:
    env = parallel_env(keep_log=True)
    rng = np.random.default_rng(7)
    _, infos = env.reset(seed=5)
    seen: dict[str, list[Any]] = {a: [infos[a]["observation"]] for a in env.agents}
    for _ in range(40):
        drop = int(rng.random() < 0.1)
        *_, infos = env.step(act(sender_0=int(rng.integers(3)), router_0=drop))
        for agent, values in seen.items():
            values.append(infos[agent]["observation"])
    env.write_log(tmp_path)
    logs = {row["connection"]: events[1] for row, events in iter_connections(tmp_path)}
    names = {f"sender_{i}": f"episode/sender{i}" for i in range(3)}
    names |= {"router_0": "episode/link.core", "router_1": "episode/link.core_back"}
    assert sorted(logs) == sorted(names.values())
    for agent, name in names.items():
        observer: Any = macc.RouterObserver(env.params.observation)
        if agent.startswith("sender"):
            observer = macc.SenderObserver()
        offline = observations(observer, logs[name], 0, 200_000, env.session.intervals)
        assert np.array_equal(offline[-41:], np.array(seen[agent])), agent
    assert max(o[macc.QUEUE] for o in seen["router_0"]) > 0


def test_a_queue_is_counted_as_it_is_now() -> None:
    env = parallel_env()
    env.reset(seed=1)
    session = env.session
    for _ in range(20):
        env.step(act())
        network = session.network
        packets, size = link_waiting(network.address, network.link_names.index("core"))
        link = network.link("core")
        left = max(0, int(link["free_at"]) - int(session.network.state.g["now"]))
        # What is left to serve: the queue, and up to a packet in service.
        assert size == packets * 1500
        assert size * 8e9 / 30e6 <= left <= (size + 1500) * 8e9 / 30e6 + 1


def test_an_episode_ends_after_its_steps() -> None:
    env = parallel_env(params=MaccParams(steps=2))
    env.reset(seed=1)
    _, _, terminated, truncated, _ = env.step(act())
    assert not any(terminated.values())
    assert not any(truncated.values())
    *_, truncated, _ = env.step(act())
    assert all(truncated.values())
    assert env.agents == []


def test_mistakes_are_explained() -> None:
    with pytest.raises(UserError, match="call reset first"):
        parallel_env().step(act())
    with pytest.raises(UserError, match="keep_log=True"):
        parallel_env().write_log(Path("nowhere"))
    with pytest.raises(UserError, match="unknown link 'cor'"):
        parallel_env(params=MaccParams(routers=("cor",))).reset()
    with pytest.raises(UserError, match=r"links\.core\.queue: must be agent"):
        parallel_env(fixed("macc-fig4", "red")).reset()
    with pytest.raises(UserError, match="fewer flows than the 4"):
        parallel_env(params=MaccParams(senders=4)).reset()


def test_a_sender_that_no_agent_can_run_is_an_error() -> None:
    with pytest.raises(UserError, match="fewer flows than the 3"):
        parallel_env(greedy_neighbours).reset(seed=1)


def test_either_kind_may_be_alone() -> None:
    """RL-TCP before queues that no agent runs, RL-AQM behind senders that none does."""
    for name, there in (
        ("dumbbell_fifo", [1, 1, 1, 0, 0]),
        ("dumbbell_red", [1, 1, 1, 0, 0]),
        ("dumbbell_newreno", [0, 0, 0, 1, 1]),
    ):
        batch = MaccBatch(1, named(name), params={"steps": 20}, stagger=False)
        batch.reset(0)
        assert batch.mask[0].tolist() == [bool(one) for one in there]
        for _ in range(20):
            batch.step(np.zeros((1, 5), np.int64))
        assert (batch.rewards[0] != 0).tolist() == [bool(one) for one in there]
        queue = {"dumbbell_fifo": "droptail", "dumbbell_red": "red", "dumbbell_newreno": "agent"}
        assert batch.networks[0].scenario.links["core"].queue == queue[name]
    batch.reset(0)
    dropping = np.array([[0, 0, 0, 1, 0]])
    for _ in range(3):
        batch.step(dropping)
    assert batch.values[0, 3, macc.DEQUEUED] == 0.0, "what a router does has an effect"


def test_a_scenario_without_anything_for_agents_is_refused() -> None:
    alone = fixed("macc-fig4", "red", {"flows.0.cc": "reno"})
    with pytest.raises(UserError, match="nothing for agents to run"):
        MaccBatch(1, alone).reset(0)


def test_what_leaves_codels_queue_is_counted_when_its_service_begins() -> None:
    params = MaccParams(watch_other_queues=True, steps=30)
    batch = MaccBatch(1, fixed("macc-fig4", "codel"), params=params, stagger=False)
    batch.reset(0)
    router, left = params.senders, 0.0
    before = int(batch.networks[0].link("core")["served"])
    for _ in range(30):
        batch.step(np.array([[0, 0, 0, 0, 0]]))
        left += batch.values[0, router, macc.DEQUEUED] * 0.2
    served = int(batch.networks[0].link("core")["served"]) - before
    assert left == pytest.approx(served)
    assert batch.values[0, router, macc.QUEUE] > 0


def test_a_sender_that_starts_late_is_taken_over_after_its_own_slow_start() -> None:
    """As in training: not with the first ones, when it has only just begun or not even that."""
    late = {"flows.0.count": 2, "flows.0.start_gap_s": 8.1, "flows.0.start_spread_s": 0.0}
    spec = fixed("macc-fig4", "droptail", {**late, "links.core.loss": 0.0})
    batch = MaccBatch(1, spec, params={"senders": 2, "routers": ()}, threads=1, stagger=False)
    batch.reset(0)
    assert batch.mask[0].all()
    # The first begins without the second; until then, nothing that is done for that has effect.
    assert batch.networks[0].now_s < 4.0
    taken = None
    for _ in range(50):
        batch.step(np.array([[2, 0]]))
        first, second = batch.windows(0).tolist()
        if second > 0 and taken is None:
            taken = batch.networks[0].now_s, second
    assert first < 420
    assert taken is not None
    # Slow start takes some 2 s to 200 segments; 25 steps from the first's start ended at 5.2 s.
    assert 9.5 < taken[0] < 8.1 + 5.0
    assert taken[1] >= 200
