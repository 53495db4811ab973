"""cczoo/TCCO-v0: the checkers, the rules of its reward, and its log against what it saw."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from data.errors import UserError
from data.netsim.network import Network
from data.netsim.scenario import Scenario
from data.store import iter_connections
from features import tcco
from features.intervals import observations
from models.envs.samplers import alternating, fixed, two_paths
from models.envs.tcco import TccoEnv, TccoParams, TccoReward

pytestmark = pytest.mark.xdist_group("netsim")


def slow_paths(rng: np.random.Generator, size_bytes: int | None = None) -> Scenario:
    """Two cheap paths, one with losses."""
    links = {
        "one": {"rate_mbps": 8.0, "delay_ms": 10.0, "queue_packets": 30},
        "two": {"rate_mbps": 4.0, "delay_ms": 25.0, "queue_packets": 20, "loss": 0.01},
        "back": {"delay_ms": 10.0},
    }
    paths = [{"forward": [name], "back": ["back"]} for name in ("one", "two")]
    flow: dict[str, Any] = {"name": "m", "paths": paths, "size_bytes": size_bytes}
    return Scenario.parse({"links": links, "flows": [flow]}, "test")


def test_the_checker_passes() -> None:
    check_env(TccoEnv(slow_paths, params=TccoParams(steps=50)), skip_render_check=True)


def test_it_is_registered() -> None:
    env = gymnasium.make("models.envs:cczoo/TCCO-v0", sampler=slow_paths)
    observation, _ = env.reset(seed=1)
    assert observation.shape == (20, 2, 6)
    assert env.observation_space.contains(observation)
    assert env.action_space.nvec.tolist() == [5, 5]  # type: ignore[attr-defined]


def play(env: TccoEnv, seed: int, steps: int) -> tuple[list[Any], list[Any], list[float]]:
    rng = np.random.default_rng(7)
    observation, info = env.reset(seed=seed)
    seen, infos, rewards = [observation], [info], []
    for _ in range(steps):
        observation, reward, _, _, info = env.step(rng.integers(0, 5, 2))
        seen.append(observation)
        infos.append(info)
        rewards.append(reward)
    return seen, infos, rewards


def test_a_seed_fixes_the_trajectory_and_seeds_differ() -> None:
    first, _, rewards = play(TccoEnv(two_paths), 3, 30)
    again, _, same = play(TccoEnv(two_paths), 3, 30)
    other, _, _ = play(TccoEnv(two_paths), 4, 30)
    assert np.array_equal(first, again)
    assert rewards == same
    assert not np.array_equal(first, other)


def test_a_log_read_back_gives_the_observations_that_the_agent_saw(tmp_path: Path) -> None:
    params = TccoParams(probe_intervals=40)
    env = TccoEnv(slow_paths, params=params, keep_log=True)
    _, infos, _ = play(env, 5, 120)
    env.write_log(tmp_path)
    [(row, events)] = list(iter_connections(tmp_path))
    assert row["cc"] == "agent"
    assert sorted(events) == [1, 2]
    count = env.session.intervals
    for subflow, variables in events.items():
        observer = tcco.SubflowObserver(params.observation)
        offline = observations(observer, variables, 0, 20_000, count)
        online = np.array([info["observation"][subflow - 1] for info in infos])
        assert np.array_equal(offline[-len(online) :], online)
        assert online[:, tcco.THROUGHPUT].max() > 1e6
        assert (online[:, tcco.RTT] >= online[:, tcco.BASE_RTT]).all()


def test_observations_stay_near_what_the_path_is() -> None:
    env = TccoEnv(slow_paths)
    _, infos, _ = play(env, 1, 200)
    last = infos[-1]["observation"]
    assert last[:, tcco.BASE_RTT] == pytest.approx([21_500, 38_000], rel=0.05)
    assert (last[:, tcco.BOTTLENECK] <= [8.8e6, 4.4e6]).all()
    assert (last[:, tcco.BOTTLENECK] >= [6.4e6, 2.4e6]).all()


def test_actions_move_the_targets_by_k_delta_within_bounds() -> None:
    params = TccoParams(
        step_share=0, step_segments=3, max_cwnd=80, most_held=1e6, probe_intervals=0
    )
    env = TccoEnv(slow_paths, params=params)
    _, info = env.reset(seed=1)
    before = info["target_cwnd"]
    *_, info = env.step(np.array([3, 1]))
    assert (info["target_cwnd"] - before).tolist() == [3, -3]
    for _ in range(40):
        *_, info = env.step(np.array([4, 0]))
    assert info["target_cwnd"].tolist() == [80, 4]
    assert info["rewards"][1] == -1.0
    assert info["rewards"][0] < -1.0, "the upper bound is no shelter from a long queue"


def test_steps_and_bounds_follow_what_the_path_holds() -> None:
    params = TccoParams(step_share=0.5, most_held=2.0, start_cwnd=4, probe_intervals=0)
    env = TccoEnv(slow_paths, params=params)
    env.reset(seed=1)
    for _ in range(60):
        *_, info = env.step(np.array([4, 4]))
    seen, before = info["observation"], info["target_cwnd"]
    payload = int(env.session.network.connection(0)["payload"])
    held = seen[:, tcco.BOTTLENECK] * seen[:, tcco.BASE_RTT] / 8e6 / payload
    assert (held > 8).all(), "both paths are full"
    *_, info = env.step(np.array([4, 1]))
    assert info["target_cwnd"].tolist() == [int(2 * held[0]), before[1] - int(0.5 * held[1])]
    assert info["rewards"][0] <= -1.0, "at the bound"


def test_what_slow_start_reached_is_not_cut_before_the_path_is_known() -> None:
    env = TccoEnv(fixed("tcco-fig10", "100 MB"))
    _, info = env.reset(seed=3)
    first = info["target_cwnd"]
    assert (first > 64).all(), "slow start ends within an interval of five round trips"
    for _ in range(6):
        *_, info = env.step(np.array([2, 2]))
        assert (info["target_cwnd"] == first).all()


def test_paths_carry_what_their_narrowest_link_does() -> None:
    env = TccoEnv(slow_paths)
    env.reset(seed=1)
    assert env.session.network.capacities(0).tolist() == [8e6, 4e6]
    network = Network(two_paths(np.random.default_rng(3)), "agent", 1)
    links = network.scenario.links
    expected = [1e6 * np.mean([r for _, r in links[name].steps or []]) for name in ("one", "two")]
    assert network.capacities(0) == pytest.approx(expected, rel=1e-6)


def test_probing_lowers_the_window_for_two_rtts_and_gives_it_back() -> None:
    env = TccoEnv(slow_paths, params=TccoParams(probe_intervals=30))
    env.reset(seed=1)
    windows, probing = [], []
    for _ in range(60):
        *_, info = env.step(np.array([2, 2]))
        windows.append(int(env.session.network.subflows(0)["agent_cwnd"][0]))
        probing.append(bool(info["probing"][0]))
    target = int(info["target_cwnd"][0])
    assert probing[30]
    assert windows[30] < target / 2
    assert windows[29] == windows[59] == target


def test_the_expflag_rises_after_six_intervals_without_growth() -> None:
    env = TccoEnv(slow_paths, params=TccoParams(probe_intervals=0))
    env.reset(seed=1)
    flags = []
    for _ in range(30):
        *_, info = env.step(np.array([2, 2]))
        flags.append(info["observation"][0, tcco.EXPFLAG])
    assert flags[-1] == 1.0
    # Holding is against the flag; growing is with it.
    assert info["rewards"][0] == -1.0
    *_, info = env.step(np.array([3, 2]))
    assert info["rewards"].tolist() == [1.0, -1.0]
    assert info["observation"][0, tcco.EXPFLAG] == 0.0


def history(rtt_us: float, base_us: float, rate_bps: float) -> np.ndarray:
    row = np.zeros(6)
    row[[tcco.THROUGHPUT, tcco.RTT, tcco.BASE_RTT]] = rate_bps, rtt_us, base_us
    return np.tile(row, (5, 1))


def test_the_reward_is_equations_10_to_14() -> None:
    reward = TccoReward(beta_us=6000, growth=0.5, floor_us=4000, resolution_us=2000,
                        steepness=4, delay_weight=2, throughput_weight=3)  # fmt: skip
    # T = 6 (1 + 0.5 (10 - 4) / 2) / 10 = 1.5; excess = 20 / 10 - 1.5 = 0.5
    assert reward.allowed(10_000) == pytest.approx(1.5)
    alpha = 1 / (1 + math.exp(-4 * 0.5))
    expected = alpha * -2 * 0.5 + (1 - alpha) * 3 * 3e7 / 4e7
    got = reward(history(20_000, 10_000, 3e7), 0, False, False, 4e7)
    assert got == pytest.approx(expected)


@pytest.mark.parametrize(
    ("delta", "bound", "explore", "expected"),
    [(1, 1, True, -1.0), (0, 0, True, -1.0), (-2, 0, True, -1.0), (2, 0, True, 1.0),
     (0, -1, False, -1.0)],
)  # fmt: skip
def test_the_rules_come_before_the_formula(
    delta: int, bound: int, explore: bool, expected: float
) -> None:
    assert TccoReward()(history(9000, 8000, 4e8), delta, bound, explore, 4e8) == expected


def test_more_overload_earns_less_up_to_the_bound_and_at_it() -> None:
    reward = TccoReward()
    worse = history(30_000, 8000, 4e8)
    assert reward.balance(worse, 4e8) < -5
    assert reward(worse, 1, 1, True, 4e8) == reward.balance(worse, 4e8)
    assert reward(worse, -1, -1, False, 4e8) == -1.0
    env = TccoEnv(slow_paths, params=TccoParams(probe_intervals=0, max_cwnd=60))
    own = TccoEnv(slow_paths, reward, {"probe_intervals": 0, "max_cwnd": 60})
    wrapped = TccoEnv(slow_paths, lambda *given: reward(*given), env.params)
    earned = []
    for one in (env, own, wrapped):
        one.reset(seed=1)
        earned.append([one.step(np.array([4, 4]))[4]["rewards"].tolist() for _ in range(60)])
    assert earned[0] == earned[1] == earned[2]
    assert max(earned[0][-1]) < -1.0, "both queues are long"


def test_the_reward_prefers_throughput_until_the_queue_grows() -> None:
    balance = TccoReward().balance

    def reward(rtt_us: float, base_us: float, rate_bps: float) -> float:
        return balance(history(rtt_us, base_us, rate_bps), 5e8)

    assert reward(8000, 8000, 4e8) > reward(8000, 8000, 3e8)
    assert reward(9000, 8000, 4e8) > reward(18_000, 8000, 4e8)
    assert math.isfinite(reward(1e7, 1.0, 0.0))
    assert reward(0, 0, 5e8) == pytest.approx(1.0)
    rows = history(0, 0, 3e7)
    rows[:, tcco.BOTTLENECK] = 6e7
    assert balance(rows, 0.0) == pytest.approx(0.5), "of a path without a limit"


def test_an_episode_ends_with_its_data_or_its_steps() -> None:
    env = TccoEnv(lambda rng: slow_paths(rng, 400_000), params=TccoParams(steps=500))
    env.reset(seed=1)
    terminated, steps = False, 0
    while not terminated:
        _, _, terminated, truncated, _ = env.step(np.array([2, 2]))
        steps += 1
        assert not truncated
    assert steps < 100
    env = TccoEnv(slow_paths, params=TccoParams(steps=3))
    env.reset(seed=1)
    assert [env.step(np.array([2, 2]))[3] for _ in range(3)] == [False, False, True]


def test_the_default_scenarios_are_those_of_fig_9a() -> None:
    """Rates alternate together, as Fig. 3's total does; delays of 3 to 5 ms are round trips."""
    ours = fixed("tcco-fig9a")(np.random.default_rng(0)).links
    for seed in range(5):
        links = alternating(np.random.default_rng(seed)).links
        assert links["one"].steps == links["two"].steps
        for name in ("one", "two"):
            assert sorted(r for _, r in links[name].steps or []) == [400.0, 500.0]
            assert sorted(d for _, d in links[name].delay_steps or []) == [3.0, 5.0]
            assert links[name].queue_packets == ours[name].queue_packets
            assert links[f"{name}_back"] == ours[f"{name}_back"]
    env = TccoEnv()
    env.reset(seed=1)
    *_, info = env.step(np.array([2, 2]))
    base = info["observation"][:, tcco.BASE_RTT]
    assert (base >= 3000).all()
    assert (base <= 5300).all()


def test_an_injected_reward_and_a_named_scenario_are_used() -> None:
    env = TccoEnv(
        fixed("tcco-fig9a"), reward=lambda history, delta, bound, explore, rate: float(delta)
    )
    env.reset(seed=1)
    assert env.step(np.array([4, 3]))[1] == 3.0


def test_mistakes_are_explained() -> None:
    with pytest.raises(UserError, match="call reset first"):
        TccoEnv(slow_paths).step(np.array([2, 2]))
    with pytest.raises(UserError, match="keep_log=True"):
        TccoEnv(slow_paths).write_log(Path("nowhere"))
    with pytest.raises(UserError, match="2 subflows where 3"):
        TccoEnv(slow_paths, params=TccoParams(subflows=3)).reset()
    with pytest.raises(UserError, match="unknown variant"):
        fixed("macc-fig4", "drotail")


def test_an_episodes_first_averages_are_of_what_there_is() -> None:
    reward = TccoReward()
    whole = history(9000, 8000, 4e8)
    assert reward.balance(whole[:2], 5e8) == pytest.approx(reward.balance(whole, 5e8))
