"""Nuwa's window crosses the network in ACKs, and losses stay the sender's to answer."""

from typing import Any

import pytest

from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def network(seed: int, flows: list[dict[str, Any]], queue_packets: int) -> Network:
    links = {
        "cell": {"rate_mbps": 10, "delay_ms": 20, "queue_packets": queue_packets},
        "back": {"delay_ms": 20},
    }
    paths = {"paths": [{"forward": ["cell"], "back": ["back"]}]}
    tree = {"links": links, "flows": [{**flow, **paths} for flow in flows]}
    return Network(Scenario.parse(tree, "test"), "nuwa", seed)


@pytest.mark.parametrize("seed", [0, 1])
def test_taking_over_sends_no_more_than_slow_start_did(seed: int) -> None:
    net = network(seed, [{"name": "f", "start_spread_s": 0.1, "target_delay_ms": 60}], 60)
    windows = []
    for step in range(1, 300):
        net.advance(step * 0.01)
        windows.append(int(net.subflows(0)["cwnd"][0]))
    # Path and queue hold 94 segments; slow start doubles until the first ACK tells of the queue.
    assert net.subflows(0)["nw_on"][0] == 1
    assert max(windows) < 300


def test_a_queue_that_never_reaches_the_target_is_shared() -> None:
    flows = [
        {"name": "nuwa", "count": 2, "start_gap_s": 1, "target_delay_ms": 500},
        {"name": "cubic", "cc": "cubic"},
    ]
    net = network(0, flows, 100)
    net.advance(10.0)
    link = net.link("cell")
    received, arrived, dropped = net.state.conn["data_rcv"].copy(), link["arrived"], link["dropped"]
    net.advance(60.0)
    shares = net.state.conn["data_rcv"] - received
    assert shares.min() > 0.02 * shares.sum()
    assert (link["dropped"] - dropped) / (link["arrived"] - arrived) < 0.05
