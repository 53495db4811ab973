"""Decisions of a simulated log are those of the agent that was simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from data.decisions import files
from data.netsim.scenario import Scenario
from data.store import iter_connections
from features import logged, nuwa, tcco
from features.intervals import observations
from models.decisions import Refused, source
from models.decisions import macc as senders
from models.decisions import nuwa as receivers
from models.decisions import tcco as windows
from models.envs.macc import parallel_env
from models.envs.nuwa import NuwaEnv
from models.envs.tcco import TccoEnv, TccoParams
from pipelines.cli import main

pytestmark = pytest.mark.xdist_group("netsim")
STEPS = 80


def two_paths(rng: np.random.Generator) -> Scenario:
    links = {
        "one": {"rate_mbps": 8.0, "delay_ms": 10.0, "queue_packets": 30},
        "two": {"rate_mbps": 4.0, "delay_ms": 25.0, "queue_packets": 20, "loss": 0.01},
        "back": {"delay_ms": 10.0},
    }
    paths = [{"forward": [name], "back": ["back"]} for name in ("one", "two")]
    return Scenario.parse({"links": links, "flows": [{"name": "m", "paths": paths}]}, "test")


def one_path(rng: np.random.Generator) -> Scenario:
    links = {
        "cell": {"rate_mbps": 6.0, "delay_ms": 20.0, "queue_packets": 60, "loss": 0.002},
        "back": {"delay_ms": 20.0},
    }
    path = {"forward": ["cell"], "back": ["back"]}
    return Scenario.parse({"links": links, "flows": [{"name": "f", "paths": [path]}]}, "test")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An episode of TCCO's agent that acts at random, and its log."""
    env = TccoEnv(two_paths, params=TccoParams(probe_intervals=0), keep_log=True)
    rng = np.random.default_rng(7)
    _, info = env.reset(seed=5)
    found: dict[str, Any] = {"begun": env.session.intervals, "values": [info["observation"]]}
    found |= {"actions": [], "rewards": []}
    for _ in range(STEPS):
        action = rng.integers(0, 5, 2)
        *_, info = env.step(action)
        for name, value in (("actions", action), ("rewards", info["rewards"])):
            found[name].append(value)
        found["values"].append(info["observation"])
    found["log"] = tmp_path_factory.mktemp("tcco")
    found["path_bps"] = env.session.network.capacities(0)
    env.write_log(found["log"])
    return {name: np.array(v) if isinstance(v, list) else v for name, v in found.items()}


def test_a_log_gives_the_observations_and_the_rewards_that_the_agent_had(played: Any) -> None:
    [(row, events)] = list(iter_connections(played["log"]))
    settings = windows.Settings(params=TccoParams(probe_intervals=0))
    run = windows.of_log(row, events, settings)
    assert (run.steps, run.subflows) == (STEPS, 2)
    assert np.array_equal(run.observation, np.float32(played["values"][:-1]))
    # The environment paid by the actions it was told, and by what it knows of the paths.
    count, observing = played["begun"] + STEPS, settings.params.observation
    seen = [logged.summed(events[s], 0, observing.interval_us, count) for s in (1, 2)]
    values = np.stack([logged.tcco_rows(one, observing) for one in seen], 1)
    replay, begun = windows.replayer(settings.params, settings.reward, 2), played["begun"]
    told = replay.decisions(values, begun - 1, begun, 1448, played["path_bps"], played["actions"])
    assert np.array_equal(told.reward, played["rewards"])
    # What it was told shows in the windows, but for what bounds and losses kept from them.
    assert np.mean(run.action == played["actions"]) > 0.85
    held = replay.decisions(values, begun - 1, begun, 1448, played["path_bps"])
    assert np.mean(held.reward == played["rewards"]) > 0.95


def test_a_whole_log_is_observed_as_an_interval_at_a_time(played: Any) -> None:
    [(_, events)] = list(iter_connections(played["log"]))
    params, count = tcco.TccoObservation(), played["begun"] + STEPS
    slow = observations(tcco.SubflowObserver(params), events[1], 0, 20_000, count)
    seen = logged.summed(events[1], 0, 20_000, count)
    assert np.array_equal(logged.tcco_rows(seen, params), slow)
    assert not logged.last_values(seen, "gain_milli", before=-1).max() > -1


def test_a_window_that_jumps_is_the_furthest_action(played: Any) -> None:
    values = played["values"].copy()
    values[10:, 0, tcco.CWND] += 1000
    settings = windows.Settings()
    made = windows.replayer(settings.params, settings.reward, 2).decisions(values, 5, 6, 1448)
    assert made.action[4, 0] == 4
    assert made.change[4, 0] > 2
    assert made.reward[4, 0] <= -1.0, "beyond what the path holds three times over"


def test_a_receivers_log_gives_its_observations_actions_and_rewards(tmp_path: Path) -> None:
    env = NuwaEnv(one_path, keep_log=True)
    rng = np.random.default_rng(7)
    _, info = env.reset(seed=5)
    begun, seen, actions, rewards, ks, losses = env.session.intervals, [], [], [], [], []
    for _ in range(STEPS):
        seen.append(info["observation"])
        ks.append(info["k"])
        actions.append(int(rng.choice([1, 2, 3] if info["k"] < 6 else [0, 1])))
        _, reward, *_, info = env.step(np.int64(actions[-1]))
        rewards.append(reward)
        losses.append(info["loss_rate"])
    env.write_log(tmp_path)
    [(row, events)] = list(iter_connections(tmp_path))
    settings = receivers.Settings()
    late = settings.params.start_intervals - begun
    run = receivers.of_log(row, events, settings)
    assert np.array_equal(run.observation[:, 0], np.float32(seen[late:]))
    assert run.action[:-1, 0].tolist() == actions[late:-1]
    # A sender finds a loss before it sends the segment again: the same ones, an interval later.
    assert np.corrcoef(run.reward[:, 0], rewards[late:])[0, 1] > 0.95
    values = np.array([*seen[late:], info["observation"]])
    told = receivers.run("", "", "", values, np.array(losses[late:]), settings)
    assert np.array_equal(told.reward[:, 0], np.float32(rewards[late:]))
    assert values[:, nuwa.GAIN] == pytest.approx(1000 * np.array([*ks[late:], info["k"]]), abs=0.51)


def test_a_senders_log_gives_its_observations_actions_and_rewards(tmp_path: Path) -> None:
    env = parallel_env(one_path_alone, params={"senders": 1, "routers": ()}, keep_log=True)
    rng = np.random.default_rng(7)
    _, infos = env.reset(seed=5)
    seen, actions, rewards = [], [], []
    for _ in range(STEPS):
        seen.append(infos["sender_0"]["observation"])
        actions.append(int(rng.choice([0, 1, 2], p=[0.4, 0.3, 0.3])))
        _, paid, *_, infos = env.step({"sender_0": np.int64(actions[-1])})
        rewards.append(paid["sender_0"])
    env.write_log(tmp_path)
    [(row, events)] = list(iter_connections(tmp_path))
    run = senders.of_log(row, events, senders.Settings())
    assert np.array_equal(run.observation[:, 0], np.float32(seen))
    assert np.array_equal(run.reward[:, 0], np.float32(rewards))
    assert np.mean(run.action[:, 0] == actions) > 0.9


def one_path_alone(rng: np.random.Generator) -> Scenario:
    tree = one_path(rng).model_dump()
    tree["links"]["cell"] |= {"rate_mbps": 20.0, "loss": 0.0, "queue_packets": 1000}
    return Scenario.parse(tree, "test")


@pytest.mark.parametrize(
    ("agent", "changed", "lost", "why"),
    [
        ("tcco", {"cc": None}, (), "--behaviour"),
        ("tcco", {}, ("rtt_us",), "no rtt_us"),
        ("tcco", {}, ("ack", "delivered_bytes"), "no delivered_bytes or ack"),
        ("tcco", {"end_us": 100_000}, (), "Start phase"),
        ("macc", {}, (), "2 subflows"),
        ("nuwa", {}, (), "2 subflows"),
    ],
)
def test_a_log_without_what_is_needed_is_refused(
    played: Any, agent: str, changed: dict[str, Any], lost: tuple[str, ...], why: str
) -> None:
    [(row, events)] = list(iter_connections(played["log"]))
    left = {
        subflow: {name: series for name, series in variables.items() if name not in lost}
        for subflow, variables in events.items()
    }
    made = source(agent)
    with pytest.raises(Refused, match=why):
        made.of_log(row | changed, left, made.settings())


def test_smoothed_round_trips_do_only_if_they_are_asked_for(played: Any) -> None:
    [(row, events)] = list(iter_connections(played["log"]))
    smoothed = {
        subflow: {"srtt_us" if name == "rtt_us" else name: series for name, series in one.items()}
        for subflow, one in events.items()
    }
    with pytest.raises(Refused, match="smoothed=true"):
        windows.of_log(row, smoothed, windows.Settings())
    run = windows.of_log(row, smoothed, windows.Settings(smoothed=True))
    assert np.array_equal(run.reward, windows.of_log(row, events, windows.Settings()).reward)


@pytest.mark.parametrize(("agent", "why"), [("macc", "in_flight"), ("nuwa", "received_bytes")])
def test_a_kernels_log_lacks_what_other_agents_observe(played: Any, agent: str, why: str) -> None:
    [(row, events)] = list(iter_connections(played["log"]))
    made = source(agent)
    with pytest.raises(Refused, match=why):
        made.of_log(row, {1: events[1]}, made.settings())


def test_the_command_writes_a_table_and_counts(
    played: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "decisions.parquet"
    words = ["features", "decisions", "tcco", "--events", str(played["log"]), "--out", str(out)]
    assert main([*words, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["decisions"] == pl.read_parquet(out).height == 2 * STEPS
    assert counts["decisions_of"] == {"agent": 2 * STEPS}
    about = files.about(out)
    assert about.actions == (-2.0, -1.0, 0.0, 1.0, 2.0)
    assert about.interval_us == 20_000
    assert main([*words, "--set", "params.observation.interval_us=40000"]) == 0
    assert "decisions of 1 connections" in capsys.readouterr().out
    assert files.about(out).interval_us == 40_000


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["decisions"], "name an agent"),
        (["decisions", "tco"], "tcco"),
        (["decisions", "macc"], "2 subflows"),
        (["decisions", "tcco", "--set", "params.reech=3"], "reach"),
        (["sbd", "tcco"], "AGENT"),
    ],
)
def test_mistakes_are_refused_in_one_line(
    played: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    out = tmp_path / "decisions.parquet"
    given = ["features", *words, "--events", str(played["log"]), "--out", str(out)]
    assert main(given) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert why in line
    assert not out.exists()
