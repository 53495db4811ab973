"""What an agent gets between decisions is the log, summed up."""

from __future__ import annotations

import numpy as np
import pytest

from data.netsim.network import Network
from data.netsim.readings import subflow_in_flight
from data.netsim.scenario import Scenario
from data.netsim.seen import NAMES
from data.netsim.state import LOG_VARIABLES, VARIABLES

pytestmark = pytest.mark.xdist_group("netsim")


def spec() -> Scenario:
    links = {"a": {"rate_mbps": 8.0, "delay_ms": 5.0, "queue_packets": 15}, "b": {"delay_ms": 5.0}}
    paths = [{"forward": ["a"], "back": ["b"]}, {"forward": ["a"], "back": ["b"]}]
    return Scenario.parse({"links": links, "flows": [{"name": "m", "paths": paths}]}, "test")


def test_what_was_seen_is_the_log_summed_up() -> None:
    network = Network(spec(), "cubic", 1, log=True, watch=True)
    network.advance(1.4)
    rows = network.log_rows()
    found = 0
    for place in range(2):
        for code in range(len(LOG_VARIABLES)):
            cell = network.state.seen[place * VARIABLES + code]
            mine = rows[(rows["sub"] == place) & (rows["variable"] == code)]["value"]
            assert cell["n"] == len(mine), NAMES[code]
            if len(mine):
                expected = [mine.sum(), mine.min(), mine[-1]]
                assert [cell["total"], cell["least"], cell["last"]] == expected
                found += 1
    assert found >= 8


def test_watching_changes_nothing_and_needs_no_log() -> None:
    plain, watched = Network(spec(), "cubic", 1), Network(spec(), "cubic", 1, watch=True)
    for network in (plain, watched):
        network.advance(2.0)
    assert np.array_equal(plain.state.sub, watched.state.sub)
    assert len(watched.log_rows()) == 0
    assert not plain.state.seen["n"].any()


def test_what_is_in_flight_is_on_the_links_or_in_their_acks() -> None:
    network = Network(spec(), "reno", 1)
    for k in range(1, 40):
        network.advance(0.05 * k)
        for place, s in enumerate(network.subflows(0)):
            out = subflow_in_flight(network.address, place)
            assert 0 <= out <= int(s["snd_nxt"]) - int(s["snd_una"])
            assert out <= int(s["cwnd"]) or int(s["ca_state"]) > 0


def test_a_saved_simulation_goes_on_as_the_one_it_was_saved_from() -> None:
    first, second = Network(spec(), "cubic", 1), Network(spec(), "cubic", 1)
    first.advance(3.0)
    second.restore(first.saved())
    for network in (first, second):
        network.advance(5.0)
    for name in ("sub", "conn", "link", "tx", "heap"):
        assert getattr(first.state, name).tobytes() == getattr(second.state, name).tobytes()
