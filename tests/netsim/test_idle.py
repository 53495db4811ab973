"""What a path has at best, and the round-trip times that are measured against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import data.netsim.cc
from data.netsim.cc import CONTROLS, COUPLED
from data.netsim.idle import round_trips_ns
from data.netsim.metrics import simulate
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def one(link: dict[str, Any], flow: dict[str, Any]) -> Scenario:
    links = {"link": link, "back": {"delay_ms": 10}}
    path = {"forward": ["link"], "back": ["back"]}
    tree = {"duration_s": 5, "links": links, "flows": [{"name": "f", "paths": [path], **flow}]}
    return Scenario.parse(tree, "test")


def test_a_paths_delays_and_sending_add_up() -> None:
    spec = one({"rate_mbps": 12, "delay_ms": 30}, {})
    assert round_trips_ns(Network(spec)).tolist() == [41e6]
    stepping = {"rate_mbps": 12, "delay_steps": [[0, 30], [1, 20]], "delay_period_s": 2}
    assert round_trips_ns(Network(one(stepping, {}))).tolist() == [31e6]


def test_a_flow_that_never_waits_has_a_ratio_of_one() -> None:
    """Less than the link carries: each segment finds it idle and is acknowledged at once."""
    spec = one({"rate_mbps": 12, "delay_ms": 30}, {"rate_mbps": 1, "ack_every": 1})
    assert simulate(spec, "cubic", 0)["rtt_ratio"] == pytest.approx(1, abs=0.01)


def test_a_full_queue_doubles_the_ratio() -> None:
    """A queue of one product of rate and base RTT, which Scalable TCP keeps nearly full."""
    full = simulate(one({"rate_mbps": 12, "delay_ms": 30, "queue_packets": 40}, {}), "scalable", 0)
    assert 1.6 < full["rtt_ratio"] < 2.0
    assert full["rtt_ratio"] == pytest.approx(full["rtt_ms"] / 41, rel=1e-6)


def test_each_paths_delay_is_measured_against_its_own() -> None:
    """Leaving a long path alone doesn't lower the ratio, as it lowers the mean round-trip time."""
    links: dict[str, Any] = {
        "near": {"rate_mbps": 12, "delay_ms": 5, "queue_packets": 20},
        "far": {"rate_mbps": 12, "delay_ms": 95, "queue_packets": 200},
        "back": {"delay_ms": 5},
    }
    paths = [{"forward": [name], "back": ["back"]} for name in ("near", "far")]
    found = {}
    for used in (1, 2):
        flows = [{"name": "f", "paths": paths[:used], "rate_mbps": 0.5, "ack_every": 1}]
        spec = Scenario.parse({"duration_s": 5, "links": links, "flows": flows}, "test")
        found[used] = simulate(spec, "cubic", 0)["rtt_ratio"]
    assert found[1] == pytest.approx(1, abs=0.05)
    assert found[2] == pytest.approx(1, abs=0.05)


def test_coupled_controls_are_those_that_read_their_siblings() -> None:
    folder = Path(data.netsim.cc.__file__).parent
    reading = {
        name
        for name, module in CONTROLS.items()
        for text in [(folder / f"{module.rpartition('.')[2]}.py").read_text(encoding="utf-8")]
        if any(word in text for word in ("c.sub0", "total_rate", "lia.avoid"))
    }
    assert reading == set(COUPLED)
