"""Policies as congestion controls: the same simulation, the same observations, late actions."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_policies import policy, scenario

from data.errors import UserError
from data.netsim.metrics import UNITS, Looks, simulate
from data.netsim.network import Network
from data.netsim.scenario import load
from models.closedloop import Player, player
from models.envs.loop import ACT
from models.envs.nuwa import NuwaBatch, NuwaParams
from models.envs.nuwa_loop import ACTIONS, K_HIGH, K_LOW
from models.envs.scripted import nuwa_hold, tcco_hold
from models.envs.stage import Stage
from models.envs.tcco import TccoBatch

pytestmark = pytest.mark.xdist_group("netsim")


@pytest.mark.parametrize("delay_us", [0, 5000])
def test_an_agent_that_holds_k_leaves_the_simulation_as_it_is(delay_us):
    # Neither the duration nor the samples are multiples of a decision interval.
    spec = load("nuwa-table1", {"duration_s": 4.05, "warmup_s": 1.03, "sample_s": 0.03})[""]
    network = Network(spec, "nuwa", 3, watch=True)
    stage = Stage(NuwaBatch(1, threads=1, stagger=False), [network], [0], delay_us)
    assert stage.play(nuwa_hold) == [simulate(spec, "nuwa", 3)]
    assert stage.decisions > 20


def test_agents_share_a_simulation_whenever_they_start():
    spec = next(iter(load("nuwa-fig8", {"duration_s": 14, "warmup_s": 2}).values()))
    network = Network(spec, "nuwa", 3, watch=True)
    batch = NuwaBatch(2, threads=1, stagger=False)
    stage = Stage(batch, [network, network], [0, 1], 1000)
    assert stage.play(nuwa_hold) == [simulate(spec, "nuwa", 3)]
    # The second starts after ten seconds.
    assert 100 < stage.decisions < 14 * 10 + 40
    assert batch.step_count[0] > batch.step_count[1] + 80


def by_hand(spec, controller, field, seed, done):
    """Metrics of a simulation whose levers are set to what was noted at each decision."""
    network = Network(spec, controller, seed, watch=True)
    looks = Looks(network)
    stops = [(time - 1, None) for time in done] + [(time, looks) for time in looks.times_ns]
    for time, look in sorted(stops, key=lambda stop: stop[0]):
        network.advance_ns(time)
        if look is None:
            for sub, value in done[time + 1].items():
                network.state.sub[field][sub] = value
        else:
            looks.look()
    return looks.metrics()


def test_unlike_agents_act_side_by_side_in_one_simulation():
    """Each of two receivers has its own k, which is what a loop by hand would set."""
    spec = next(iter(load("nuwa-fig8", {"duration_s": 14.05, "warmup_s": 2}).values()))
    network = Network(spec, "nuwa", 3, watch=True)
    batch = NuwaBatch(2, threads=1, stagger=False)
    done = {}
    factors = np.array([1.25, 0.25])

    def act(batch):
        acting = batch.phase == ACT
        k = np.clip(factors * [batch.gain(0), batch.gain(1)], K_LOW, K_HIGH)
        at = int(batch.intervals[0]) * 100_000_000
        done[at] = {sub: k[sub] for sub in np.flatnonzero(acting).tolist()}
        return np.array([[ACTIONS.index(factor)] for factor in factors.tolist()])

    found = Stage(batch, [network, network], [0, 1]).play(act)
    assert network.state.sub["agent_k"][:2].tolist() == [K_HIGH, K_LOW]
    assert {len(those) for those in done.values()} == {1, 2}
    assert found == [by_hand(spec, "nuwa", "agent_k", 3, done)]
    alike = Network(spec, "nuwa", 3, watch=True)
    held = Stage(NuwaBatch(2, threads=1, stagger=False), [alike, alike], [0, 1]).play(nuwa_hold)
    assert found[0]["flows"]["first0"] > held[0]["flows"]["first0"]


def test_what_an_agent_sees_is_what_it_saw_in_training():
    spec = scenario()
    batch = NuwaBatch(1, lambda rng: spec, threads=1, params=NuwaParams(steps=12), stagger=False)
    batch.reset(5)
    rng = np.random.default_rng([5, 0, 0])
    seed = int(rng.integers(1 << 31))
    wanted = [batch.observations.copy()]
    for k in range(10):
        batch.step(np.array([[k % 5]]))
        wanted.append(batch.observations.copy())
    seen = []

    def act(there):
        seen.append(there.observations.copy())
        return np.array([[(len(seen) - 1) % 5]])

    network = Network(spec, "nuwa", seed, watch=True)
    Stage(NuwaBatch(1, threads=1, stagger=False), [network], [0]).play(act)
    assert len(seen) > len(wanted)
    assert np.array_equal(seen[: len(wanted)], wanted)


@pytest.mark.parametrize("delay_ms", [0, 1, 5])
def test_an_action_takes_effect_after_the_delay(delay_ms, monkeypatch):
    found = []
    look = Looks.look

    def noted(looks):
        window = int(looks.network.state.sub["agent_cwnd"][0])
        found.append((looks.times_ns[looks.taken] // 1_000_000, window))
        look(looks)

    monkeypatch.setattr(Looks, "look", noted)
    network = Network(scenario(sample_s=0.001), "agent", 1, watch=True)
    batch = TccoBatch(1, threads=1, stagger=False, params={"probe_intervals": 0})
    turns = itertools.cycle([-1, 1])
    stage = Stage(batch, [network], [0], delay_ms * 1000)
    stage.play(lambda batch: tcco_hold(batch) + next(turns))
    moved = [t for (t, w), (_, before) in zip(found[1:], found, strict=False) if w != before]
    # The first is the hand-over at the end of slow start, which isn't an action.
    assert len(moved) > 50
    assert {time % 20 for time in moved[1:]} == {delay_ms}


@pytest.mark.parametrize(
    ("name", "paths", "flows"),
    [("tcco", 1, 1), ("tcco", 2, 2), ("nuwa", 1, 1), ("nuwa", 1, 2), ("macc", 1, 4)],
)
def test_a_policy_plays_scenarios_of_many_shapes(name, paths, flows):
    one = Player(policy(name), 1.0)
    episodes = [(scenario(paths, flows), seed) for seed in range(2)]
    rows = one.play(episodes)
    keys = simulate(*episodes[0][:1], "cubic", 0).keys()
    for row in rows:
        assert row.keys() == keys | {"decision_us"}
        assert row.keys() - {"flows"} <= UNITS.keys()
        assert len(row["flows"]) == flows
        assert row["goodput_mbps"] > 0.5
    # Side by side or one by one, it comes to the same, but for what a decision costs.
    assert rows[0]["decision_us"] != rows[1]["decision_us"]
    alone = [one.play([episode])[0] for episode in episodes]
    for row in (*alone, *rows):
        assert row.pop("decision_us") > 0
    assert alone == rows


@pytest.mark.parametrize(
    ("name", "paths", "more", "said"),
    [
        ("tcco", 3, {}, "3 subflows, it was trained with 2 at most"),
        ("nuwa", 2, {}, "2 paths, it is a receiver of one"),
        ("macc", 2, {}, "2 paths, its senders have one"),
    ],
)
def test_a_scenario_that_doesnt_fit_is_refused(name, paths, more, said):
    with pytest.raises(UserError, match=said):
        Player(policy(name)).play([(scenario(paths, **more), 1)])


def test_a_scenario_without_a_flow_under_test_is_refused():
    spec = scenario()
    flows = [flow.model_copy(update={"cc": "cubic"}) for flow in spec.flows]
    with pytest.raises(UserError, match="no flow without a cc"):
        Player(policy("nuwa")).check(spec.model_copy(update={"flows": flows}))


@pytest.mark.parametrize(("delay", "ok"), [(-1.0, False), (19.9, True), (20.0, False)])
def test_an_action_takes_effect_before_the_next_decision(delay, ok):
    if ok:
        assert Player(policy("tcco"), delay).facts == {"delay_ms": delay}
    else:
        with pytest.raises(UserError, match=r"give one from 0 to below 20 ms"):
            Player(policy("tcco"), delay)


def test_routers_run_plain_queues_and_senders_those_flows_that_name_no_control():
    both = policy("macc")
    dumbbell = load("macc-fig4", {"duration_s": 3})
    assert Player(both).check(dumbbell["droptail"]).routers == ("core", "core_back")
    assert Player(both).check(dumbbell["codel"]).routers == ("core_back",)
    alone = Player(both.only("macc-aqm")).check(dumbbell["droptail"])
    assert (alone.controller, alone.senders) == ("reno", 0)
    assert Player(both.only("macc-tcp")).check(dumbbell["codel"]).routers == ()
    assert Player(both).check(scenario()).routers == ("link0",)
    # Both parts alone are again the whole.
    row = Player(both).play([(scenario(flows=2), 1)])
    joined = both.only("macc-tcp").joined(both.only("macc-aqm"), "macc")
    again = Player(joined).play([(scenario(flows=2), 1)])
    assert {**row[0], "decision_us": 0} == {**again[0], "decision_us": 0}
    # Halves of two trainings aren't.
    other = replace(both, settings={**both.settings, "seed": 8})
    with pytest.raises(UserError, match="differ in settings"):
        both.only("macc-tcp").joined(other.only("macc-aqm"), "macc")


def test_a_name_that_is_none_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(UserError, match="did you mean 'tcco'"):
        player("tccoo", zoo=tmp_path)
    with pytest.raises(UserError, match=r"no entry 'nuwa-rl' in .*: train it \(cczoo train nuwa\)"):
        player("nuwa-rl", zoo=tmp_path)
    with pytest.raises(UserError, match="no checkpoint"):
        player(str(tmp_path))
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="a bundle without a policy"):
        player(str(tmp_path))


def test_playing_needs_no_ray():
    code = """
import sys
sys.path.insert(0, "tests/models")
sys.modules["ray"] = None
from random_policies import policy, scenario
from models.closedloop import Player
import json
from importlib import import_module
from models.rl.networks import NETWORKS
for line in NETWORKS.values():
    getattr(import_module(line.partition(":")[0]), line.partition(":")[2])
rows = [Player(policy(n)).play([(scenario(), 1)])[0] for n in ("tcco", "nuwa", "macc")]
print(json.dumps([row["goodput_mbps"] for row in rows]))
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    assert min(json.loads(done.stdout)) > 0.5
