"""Laws that hold in every simulation, whatever the parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.netsim.cc import CONTROLS
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")

MBPS = 1448 / 1500
"""Payload's part of the rate."""


def dumbbell(**link: Any) -> dict[str, Any]:
    return {
        "links": {"bottleneck": link, "back": {"delay_ms": link.get("delay_ms", 0.0)}},
        "flows": [{"name": "f", "paths": [{"forward": ["bottleneck"], "back": ["back"]}]}],
    }


def scenario(tree: dict[str, Any]) -> Scenario:
    return Scenario.parse(tree, "test")


def check_conservation(network: Network) -> None:
    state = network.state
    on_links = 0
    for link in state.link:
        waiting = int(link["q_packets"]) if link["queue"] == 3 else 0
        here = int(link["flight"]) + waiting
        assert link["arrived"] == link["delivered"] + link["dropped"] + link["lost"] + here
        on_links += here
    held = sum(1 for e in state.heap[: int(state.g["heap_n"])] if e["kind"] == 2)
    assert state.g["free_n"] + on_links + held == len(state.pkt)


def check_subflows(network: Network) -> None:
    for s in network.state.sub:
        out = s["snd_nxt"] - s["snd_una"]
        assert 0 <= s["sacked_out"] <= out
        assert 0 <= s["lost_out"] + s["sacked_out"] <= out
        assert 0 <= s["retrans_out"] <= out
        assert 0 <= s["to_retx"] <= s["lost_out"]
        assert s["snd_una"] <= s["rcv_nxt"] <= s["snd_nxt"]
        assert s["cwnd"] >= 1
    for c in network.state.conn:
        assert c["data_una"] <= c["data_rcv"] <= c["data_nxt"]


links = st.fixed_dictionaries(
    {
        "rate_mbps": st.floats(0.5, 200.0),
        "delay_ms": st.floats(0.0, 100.0),
        "queue_packets": st.integers(2, 300),
    },
    optional={
        "loss": st.floats(0.0, 0.05),
        "jitter_ms": st.floats(0.0, 20.0),
        "reorder": st.booleans(),
        "loss_at": st.sampled_from(["entry", "exit"]),
        "queue": st.sampled_from(["droptail", "red", "codel", "pie"]),
        "ecn": st.booleans(),
    },
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    first=links,
    second=links,
    controllers=st.lists(st.sampled_from(list(CONTROLS)), min_size=2, max_size=2),
    count=st.integers(1, 4),
    flow=st.fixed_dictionaries(
        {},
        optional={
            "ack_every": st.integers(1, 3),
            "pacing": st.booleans(),
            "ecn": st.booleans(),
            "window_bytes": st.integers(20_000, 2_000_000),
            "size_bytes": st.integers(1_000, 3_000_000),
            "scheduler": st.sampled_from(["minrtt", "roundrobin", "redundant", "qos"]),
        },
    ),
    multipath=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_random_scenarios_keep_the_laws(
    first: dict[str, Any],
    second: dict[str, Any],
    controllers: list[str],
    count: int,
    flow: dict[str, Any],
    multipath: bool,
    seed: int,
) -> None:
    paths = [{"forward": ["one"], "back": ["back"]}, {"forward": ["two"], "back": ["back"]}]
    tree = {
        "links": {"one": first, "two": second, "back": {"delay_ms": 5.0}},
        "flows": [
            {"name": "f", "cc": controllers[0], "count": count,
             "paths": paths if multipath else paths[:1], **flow},
            {"name": "g", "cc": controllers[1], "paths": paths[1:]},
        ],
    }  # fmt: skip
    network = Network(scenario(tree), seed=seed)
    for second_ in range(1, 7):
        network.advance(float(second_))
        check_conservation(network)
        check_subflows(network)
    for name, spec in (("one", first), ("two", second)):
        link = network.link(name)
        capacity = spec["rate_mbps"] * 1e6 * 6 / 8 + 1500
        assert link["bytes_out"] <= capacity
        assert (
            link["wait_max"] <= (spec["queue_packets"] + 1) * 12e9 / spec["rate_mbps"] / 1e3 + 1e6
        )
    propagation = (min(first["delay_ms"], second["delay_ms"]) + 5.0) * 1e6
    for s in network.state.sub:
        assert s["min_rtt"] >= propagation - 2


@pytest.mark.parametrize(
    ("ack_every", "byte_counting", "per_growth"), [(1, True, 1), (2, True, 1), (2, False, 2)]
)
@pytest.mark.parametrize(("loss", "delay_ms"), [(0.001, 25.0), (0.01, 50.0)])
def test_reno_follows_mathis(
    loss: float, delay_ms: float, ack_every: int, byte_counting: bool, per_growth: int
) -> None:
    tree = dumbbell(delay_ms=delay_ms, loss=loss)
    tree["flows"][0] |= {
        "count": 10, "start_spread_s": 1.0, "ack_every": ack_every,
        "byte_counting": byte_counting,
    }  # fmt: skip
    network = Network(scenario(tree), "reno", seed=3)
    network.advance(100.0)
    before, trips = network.state.conn["data_rcv"].copy(), network.state.sub["rtt_sum"].copy()
    count = network.state.sub["rtt_n"].copy()
    network.advance(300.0)
    rate = (network.state.conn["data_rcv"] - before).mean() / 200.0
    # Delayed ACKs delay some of the segments: the RTT is that measured.
    rtt_s = (network.state.sub["rtt_sum"] - trips).sum() / 1e9
    rtt_s /= (network.state.sub["rtt_n"] - count).sum()
    # Mathis et al. 1997: C is the square root of 3/2 segments, of 3/4 where the window grows
    # by ACKs and every other segment is acknowledged.
    expected = math.sqrt(1.5 / per_growth) / (rtt_s * math.sqrt(loss))
    assert rate == pytest.approx(expected, rel=0.10)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_poisson_arrivals_wait_as_in_md1(load: float) -> None:
    tree = {
        "links": {"server": {"rate_mbps": 12.0}},
        "sources": [{"path": ["server"], "rate_mbps": 12.0 * load, "poisson": True}],
    }
    network = Network(scenario(tree), seed=5)
    network.advance(2000.0)
    link = network.link("server")
    expected = load / (2 * (1 - load)) * 1e6
    assert link["wait_sum"] / link["served"] == pytest.approx(expected, rel=0.03)


def test_equal_reno_flows_share_fairly() -> None:
    tree = dumbbell(rate_mbps=20.0, delay_ms=20.0, queue_packets=60)
    tree["flows"][0] |= {"count": 4, "start_spread_s": 2.0}
    network = Network(scenario(tree), "reno", seed=2)
    network.advance(20.0)
    before = network.state.conn["data_rcv"].copy()
    network.advance(260.0)
    share = (network.state.conn["data_rcv"] - before).astype(float)
    assert share.sum() ** 2 / (len(share) * (share**2).sum()) >= 0.95
    assert share.sum() * 1448 * 8 / 240e6 >= 0.95 * 20.0 * MBPS


def test_deliveries_keep_their_order_without_reordering() -> None:
    tree = dumbbell(rate_mbps=10.0, delay_ms=20.0, queue_packets=1000, jitter_ms=30.0)
    network = Network(scenario(tree), "cubic", seed=1)
    network.advance(10.0)
    s = network.state.sub[0]
    assert s["retransmitted"] == 0
    assert s["reordering"] == 0
    assert s["order"] == s["rcv_nxt"]


def test_reordering_is_seen_and_survived() -> None:
    tree = dumbbell(rate_mbps=10.0, delay_ms=20.0, queue_packets=1000, jitter_ms=5.0, reorder=True)
    network = Network(scenario(tree), "cubic", seed=1)
    network.advance(20.0)
    assert network.state.sub[0]["reordering"] == 1
    assert network.state.conn[0]["data_rcv"] * 1448 * 8 / 20e6 > 0.8 * 10 * MBPS


def test_a_single_flow_fills_a_link_and_only_just() -> None:
    tree = dumbbell(rate_mbps=8.0, delay_ms=10.0, queue_packets=40)
    network = Network(scenario(tree), "reno")
    network.advance(60.0)
    rate = network.state.conn[0]["data_rcv"] * 1448 * 8 / 60e6
    assert 0.97 * 8 * MBPS < rate <= 8 * MBPS


def test_a_dead_link_brings_timeouts_and_recovers() -> None:
    tree = dumbbell(delay_ms=10.0, queue_packets=50, steps=[(0, 10), (3, 0), (6, 10)])
    network = Network(scenario(tree), "cubic", log=True)
    network.advance(5.9)
    held = int(network.state.conn[0]["data_rcv"])
    assert network.state.sub[0]["timeouts"] >= 2
    assert network.state.sub[0]["ca_state"] == 4
    network.advance(12.0)
    assert network.state.conn[0]["data_rcv"] > held + 1000
    assert network.state.sub[0]["ca_state"] != 4
    states = {int(r["value"]) for r in network.log_rows() if r["variable"] == 1}
    assert 4 in states


def test_a_finite_flow_ends_in_the_expected_time() -> None:
    tree = dumbbell(rate_mbps=100.0, delay_ms=25.0, queue_packets=1000)
    tree["flows"][0]["size_bytes"] = 10 * 1448
    network = Network(scenario(tree), "reno")
    network.advance(2.0)
    # Handshake (1 RTT), then the initial window in one go: half an RTT to the receiver.
    assert network.state.conn[0]["done_t"] / 1e6 == pytest.approx(75.0, abs=2.5)


def test_a_dead_path_hands_its_data_to_the_other() -> None:
    tree = {
        "links": {
            "good": {"rate_mbps": 10.0, "delay_ms": 10.0, "queue_packets": 50},
            "dying": {"steps": [(0, 10), (2, 0)], "delay_ms": 5.0, "queue_packets": 50},
            "back": {"delay_ms": 10.0},
        },
        "flows": [
            {"name": "f", "size_bytes": 10_000_000, "paths": [
                {"forward": ["good"], "back": ["back"]},
                {"forward": ["dying"], "back": ["back"]},
            ]}
        ],
    }  # fmt: skip
    network = Network(scenario(tree), "reno")
    network.advance(30.0)
    assert 0 < network.state.conn[0]["done_t"] < 12e9


def test_multipath_adds_capacities() -> None:
    tree = {
        "links": {
            "a": {"rate_mbps": 10.0, "delay_ms": 10.0, "queue_packets": 50},
            "b": {"rate_mbps": 5.0, "delay_ms": 30.0, "queue_packets": 50},
            "back": {"delay_ms": 10.0},
        },
        "flows": [
            {"name": "f", "paths": [
                {"forward": ["a"], "back": ["back"]},
                {"forward": ["b"], "back": ["back"]},
            ]}
        ],
    }  # fmt: skip
    network = Network(scenario(tree), "cubic")
    network.advance(30.0)
    rate = network.state.conn[0]["data_rcv"] * 1448 * 8 / 30e6
    assert 0.93 * 15 * MBPS < rate < 15 * MBPS


def test_a_queue_seen_between_packets_is_the_queue_of_that_moment() -> None:
    tree = {
        "links": {"server": {"rate_mbps": 12.0, "queue_packets": 10}},
        "sources": [{"path": ["server"], "rate_mbps": 24.0, "stop_s": 0.1}],
    }
    network = Network(scenario(tree))
    network.advance(0.1)
    assert network.link("server")["q_packets"] >= 9
    # Nobody sends any more: a packet leaves every millisecond.
    network.advance(0.106)
    assert 3 <= network.link("server")["q_packets"] <= 4
    network.advance(0.2)
    assert network.link("server")["q_packets"] == 0


def test_a_receiver_that_reads_seldom_acknowledges_when_it_reads() -> None:
    gaps = {}
    for read_every_ms in (0.0, 5.0):
        tree = dumbbell(rate_mbps=8.0, delay_ms=20.0, queue_packets=60)
        tree["flows"][0]["read_every_ms"] = read_every_ms
        network = Network(scenario(tree), "reno", log=True)
        network.advance(10.0)
        rows = network.log_rows()
        acks = rows[(rows["variable"] == 2) & (rows["t"] > 5e9)]
        gaps[read_every_ms] = float(np.median(np.diff(acks["t"]))) / 1e6
        assert network.state.conn[0]["data_rcv"] * 1448 * 8 / 10e6 > 0.9 * 8 * MBPS
    # 1.5 ms a packet: every second one, or whatever came between two reads.
    assert gaps[0.0] == pytest.approx(3.0, abs=0.1)
    assert gaps[5.0] == pytest.approx(5.0, abs=0.1)
