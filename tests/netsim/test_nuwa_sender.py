"""Nuwa's window crosses the network in ACKs, and losses stay the sender's to answer."""

from typing import Any

import pytest

from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def network(
    seed: int,
    flows: list[dict[str, Any]],
    queue_packets: int,
    steps: list[list[float]] | None = None,
) -> Network:
    rate: dict[str, Any] = {"rate_mbps": 10} if steps is None else {"steps": steps}
    links = {
        "cell": {**rate, "delay_ms": 20, "queue_packets": queue_packets},
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


@pytest.mark.parametrize("low_mbps", [0.05, 1.0])
def test_the_window_comes_back_after_a_fall_of_the_rate(low_mbps: float) -> None:
    steps = [[0.0, 5.0], [10.0, low_mbps], [14.0, 5.0]]
    net = network(0, [{"name": "f", "target_delay_ms": 20}], 60, steps)
    net.advance(16.0)
    received = int(net.state.conn["data_rcv"][0])
    net.advance(19.0)
    rate = (int(net.state.conn["data_rcv"][0]) - received) * 1448 * 8 / 3e6
    assert rate > 4.5


def test_a_rise_of_the_delay_is_no_noise() -> None:
    steps = [[0.0, 5.0], [10.0, 0.05], [14.0, 5.0]]
    net = network(0, [{"name": "f", "target_delay_ms": 20}], 60, steps)
    net.advance(13.9)
    sub = net.subflows(0)
    # Seconds of queue, exactly measured: the filter follows them.
    assert sub["nw_noise"][0] < 1e3
    assert sub["nw_delay"][0] > 1e3
