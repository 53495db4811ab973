"""cczoo/Nuwa-v0: the checkers, its actions and reward, and its log against what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from data.errors import UserError
from data.ingest import Settings, ingest
from data.netsim.capacity import Trace
from data.netsim.scenario import Scenario
from data.store import iter_connections
from features import nuwa
from features.intervals import observations
from models.envs.nuwa import NuwaEnv, NuwaParams, NuwaReward
from models.envs.nuwa_twin import batch
from models.envs.samplers import NETWORKS, SPLITS, measured, named, wireless
from models.rl import agents
from models.rl.training import train

pytestmark = pytest.mark.xdist_group("netsim")


def slow(rng: np.random.Generator) -> Scenario:
    tree = {
        "links": {
            "cell": {"generate": {"kind": "cellular", "mean_mbps": 6.0, "seed": 3},
                     "delay_ms": 20.0, "queue_packets": 100},
            "back": {"delay_ms": 20.0},
        },
        "flows": [{"name": "f", "target_delay_ms": 60.0,
                   "paths": [{"forward": ["cell"], "back": ["back"]}]}],
    }  # fmt: skip
    return Scenario.parse(tree, "test")


def play(env: NuwaEnv, seed: int, steps: int) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(7)
    observation, info = env.reset(seed=seed)
    seen, infos = [observation], [info]
    for _ in range(steps):
        observation, _, _, _, info = env.step(rng.integers(5))
        seen.append(observation)
        infos.append(info)
    return seen, infos


def test_the_checker_passes() -> None:
    check_env(NuwaEnv(slow, params=NuwaParams(steps=50)), skip_render_check=True)


def test_it_is_registered() -> None:
    env = gymnasium.make("models.envs:cczoo/Nuwa-v0", sampler=slow)
    observation, _ = env.reset(seed=1)
    assert observation.shape == (8, 7)
    assert env.action_space.n == 5  # type: ignore[attr-defined]
    assert NuwaParams().steps == 800


def test_a_seed_fixes_the_trajectory_and_seeds_differ() -> None:
    first, again, other = (play(NuwaEnv(wireless), seed, 25)[0] for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_log_read_back_gives_the_observations_that_the_agent_saw(tmp_path: Path) -> None:
    env = NuwaEnv(slow, keep_log=True)
    _, infos = play(env, 5, 80)
    env.write_log(tmp_path)
    [(row, events)] = list(iter_connections(tmp_path))
    assert row["cc"] == "nuwa"
    offline = observations(nuwa.ReceiverObserver(), events[1], 0, 100_000, env.session.intervals)
    online = np.array([info["observation"] for info in infos])
    assert np.array_equal(offline[-len(online) :], online)
    # 20 ms of propagation, at most 100 packets of queue
    assert online[:, nuwa.DELAY].min() > 20_000
    assert online[:, nuwa.RECEIVED].mean() * 80 == pytest.approx(6e6, rel=0.5)


def test_k_is_multiplied_and_stays_in_its_range() -> None:
    env = NuwaEnv(slow)
    _, info = env.reset(seed=1)
    assert info["k"] == 7.0
    ks = [env.step(np.int64(a))[4]["k"] for a in (3, 4, 2, 1, 0, 0, 2)]
    assert ks == [8.75, 9.0, 9.0, 9.0, 2.25, 1.0, 1.05]


def test_k_matters() -> None:
    windows = []
    for action in (0, 4):
        env = NuwaEnv(slow)
        env.reset(seed=1)
        infos = [env.step(np.int64(action))[4]["observation"] for _ in range(60)]
        windows.append(np.array(infos)[:, nuwa.WINDOW])
    assert windows[1].std() > windows[0].std()


def test_the_reward_is_equations_12_and_13() -> None:
    reward = NuwaReward(throughput_unit_bps=1e6, delay_unit_us=1e3)
    # U(32) = 32**0.4 / 0.4 = 10; U(1) = 2.5
    assert reward.utility(32.0) == pytest.approx(10.0)
    assert reward(32e6, 1e3, 1.0) == pytest.approx(0.4 * 10 - 0.4 * 2.5 - 0.2 * 2.5)
    assert reward(0.0, 0.0, 0.0) == 0.0


def test_episodes_are_as_long_as_asked() -> None:
    env = NuwaEnv(slow, params=NuwaParams(steps=2))
    env.reset(seed=1)
    assert [env.step(np.int64(1))[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_measured_traces_can_be_trained_on() -> None:
    trace = Trace("t", "cellular", np.arange(60.0), np.full(60, 3.0), 60.0)
    env = NuwaEnv(measured([trace]))
    env.reset(seed=3)
    received = [env.step(np.int64(1))[4]["observation"][0] for _ in range(60)]
    assert sum(received) * 8 / 6e6 == pytest.approx(3.0, rel=0.1)
    with pytest.raises(UserError, match="none to draw from"):
        measured([])
    for rates in (np.zeros(60), np.zeros(0)):
        with pytest.raises(UserError, match="trace silent: carries nothing"):
            measured([trace, Trace("silent", "wifi", np.arange(float(len(rates))), rates, 60.0)])


@pytest.mark.parametrize(("own", "mean"), [(1.0, 3.0), (40.0, 40.0), (600.0, 150.0)])
def test_measured_links_are_as_varied_as_generated_ones(own: float, mean: float) -> None:
    rates = np.linspace(0.5, 1.5, 100) * own
    sampler = measured([Trace("t", "cellular", np.arange(100.0), rates, 100.0)])
    specs = [sampler(np.random.default_rng(seed)) for seed in range(200)]
    links = [spec.links["cell"] for spec in specs]
    firsts = {link.steps[0][1] for link in links if link.steps}
    assert len(firsts) > 60
    for link in links:
        assert link.steps is not None
        times, got = np.array(link.steps).T
        assert times[0] == 0
        assert (np.diff(times) > 0).all()
        assert got.mean() == pytest.approx(mean)
        # The trace itself, begun elsewhere.
        assert np.sort(got) == pytest.approx(rates * mean / own)
    targets = np.array([spec.flows[0].target_delay_ms for spec in specs])
    queues_ms = np.array([link.queue_packets for link in links]) * 12.0 / mean
    assert targets.min() < 15
    assert targets.max() > 150
    # No queue is below 20 packets, which are 80 ms of the slowest links.
    assert queues_ms.min() < 81
    assert queues_ms.max() > 300
    assert 0.4 < np.mean([link.loss > 0 for link in links]) < 0.6


def test_measured_traces_are_named_by_their_directory(tmp_path: Path) -> None:
    lines = "".join(f"{t} {3 + t % 5}\n" for t in range(100))
    for name in ("bus", "train", "car"):
        (tmp_path / f"{name}.txt").write_text(lines, encoding="utf-8")
    logs = sorted(tmp_path.glob("*.txt"))
    ingest(logs, tmp_path / "out", settings=Settings(jobs=1))
    env = batch(2, 1, {"sampler": f"measured:{tmp_path / 'out'}"})
    env.reset(1)
    for _ in range(100):
        env.step(np.ones((2, 1), np.int64))
    assert (env.values[:, 0, nuwa.RECEIVED] * 8e-5 < 8.0).all()
    env.close()
    with pytest.raises(UserError, match="not an ingested directory"):
        batch(1, 1, {"sampler": f"measured:{tmp_path / 'nowhere'}"})


def ingested(tmp_path: Path, names: Sequence[str]) -> Path:
    """Traces of 3, 4, ... Mbit/s."""
    for mbps, name in enumerate(names, 3):
        text = "".join(f"{t} {mbps}\n" for t in range(100))
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    ingest(sorted(tmp_path.glob("*.txt")), tmp_path / "out", settings=Settings(jobs=1))
    return tmp_path / "out"


def test_each_part_of_the_traces_is_drawn_by_its_own_name_alone(tmp_path: Path) -> None:
    names = ("bus", "train", "car", "ferry", "foot", "metro", "bike", "ship", "taxi", "lift", "cab")
    out, rng, drawn = ingested(tmp_path, names), np.random.default_rng(1), []
    for name in SPLITS:
        sampler = named(f"{name}{out}")
        links = [next(iter(sampler(rng).links.values())) for _ in range(100)]
        drawn.append({round(link.steps[0][1]) for link in links})
    assert sum(map(len, drawn)) == len(names)
    assert set().union(*drawn) == set(range(3, 3 + len(names)))


def test_a_part_without_traces_is_refused_before_training(tmp_path: Path) -> None:
    out = ingested(tmp_path, ("bus",))
    (alone,) = [name for name in SPLITS if not _refused(f"{name}{out}")]
    assert alone == "measured:"
    assert "none of the 1 traces there" in _refused(f"validation:{out}")
    params = agents.settings("nuwa", {"env": {"sampler": f"measured:{out}"}})
    with pytest.raises(UserError, match=r"validation:.* --set validate_every=0"):
        train("nuwa", params, tmp_path / "rl")
    unchosen = params.model_copy(update={"validate_every": 0})
    with pytest.raises(UserError, match=r"held-out:.* none of the 1 traces"):
        train("nuwa", unchosen, tmp_path / "rl", judge=2)
    assert not (tmp_path / "rl").exists()


@pytest.mark.parametrize("part", ["held-out:", "validation:"])
def test_nobody_trains_on_what_chooses_or_judges(tmp_path: Path, part: str) -> None:
    params = agents.settings("nuwa", {"env": {"sampler": f"{part}{tmp_path}/x"}, "steps": 1})
    with pytest.raises(UserError, match=f"{part}.* train on measured:{tmp_path}/x") as refused:
        train("nuwa", params, tmp_path / "rl")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "rl").exists()


def _refused(name: str) -> str:
    try:
        named(name)
    except UserError as error:
        return str(error)
    return ""


def test_mistakes_are_explained() -> None:
    with pytest.raises(UserError, match="call reset first"):
        NuwaEnv(slow).step(np.int64(1))
    with pytest.raises(UserError, match="keep_log=True"):
        NuwaEnv(slow).write_log(Path("nowhere"))

    def two(rng: np.random.Generator) -> Scenario:
        tree = slow(rng).model_dump()
        tree["flows"][0]["paths"] *= 2
        return Scenario.parse(tree, "test")

    with pytest.raises(UserError, match="2 paths"):
        NuwaEnv(two).reset()


@pytest.mark.parametrize("name", NETWORKS)
def test_fig_12s_networks_differ_in_their_rates(name: str) -> None:
    kind, least, most = NETWORKS[name]
    sampler, rng, means = named(f"nuwa_{name}"), np.random.default_rng(0), []
    for _ in range(30):
        link = sampler(rng).links["cell"]
        if kind is None:
            assert link.generate is None
            means.append(link.rate_mbps)
        else:
            assert link.generate is not None
            assert link.generate.kind == kind
            means.append(link.generate.mean_mbps)
    assert least <= min(means) < max(means) <= most
    played = batch(2, 1, {"sampler": f"nuwa_{name}", "params": {"steps": 3}})
    played.reset(1)
    for _ in range(3):
        played.step(np.ones((2, 1), np.int64))
    assert (played.values[:, 0, nuwa.RECEIVED] > 0).all()
