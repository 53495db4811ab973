"""BBR's estimates of the path beyond bandwidth and RTT, pacing, and forwarding that is late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def network(
    link: dict[str, Any] | None = None,
    flow: dict[str, Any] | None = None,
    paths: int = 1,
    log: bool = False,
) -> Network:
    tree = {
        "links": {
            "b": {"rate_mbps": 10.0, "delay_ms": 20.0, "queue_packets": 200} | (link or {}),
            "back": {"delay_ms": 20.0},
        },
        "flows": [
            {"name": "f", "cc": "bbr", "paths": [{"forward": ["b"], "back": ["back"]}] * paths}
            | (flow or {})
        ],
    }
    return Network(Scenario.parse(tree, "test"), seed=1, log=log)


def test_stretched_acks_raise_the_window_by_what_comes_at_once() -> None:
    windows = []
    for ack_every in (1, 16):
        one = network(flow={"ack_every": ack_every, "quick_acks": 0, "ack_delay_ms": 100.0})
        one.advance(8.0)
        s = one.state.sub[0]
        extra = max(int(s["bb_extra0"]), int(s["bb_extra1"]))
        assert ack_every - 2 <= extra <= 2 * ack_every
        windows.append(int(s["cwnd"]))
    assert windows[1] - windows[0] >= 12


def test_a_policer_is_seen_in_two_lossy_intervals_of_one_rate() -> None:
    for loss, found in ((0.3, True), (0.05, False)):
        one = network({"loss": loss})
        found_now = False
        for step in range(1, 60):
            one.advance(step / 4)
            found_now |= bool(one.state.sub[0]["bb_lt_use"])
        assert found_now is found, loss


def test_mptcp_options_eat_the_margin_below_the_estimated_rate() -> None:
    """The kernel paces segments of mss_cache: with DSS options 1.7 % faster than it means to."""
    rates = []
    for header_bytes in (52, 76):
        flow = {"segment_bytes": 1500 - header_bytes, "header_bytes": header_bytes}
        one = network(flow=flow, paths=2)
        one.advance(3.0)
        s = one.state.sub[0]
        gain = float(s["pacing_rate"] / (s["bb_bw0"] * 1500))
        rates.append(gain / min((1.25, 0.75, 1.0), key=lambda phase: abs(gain - phase)))
    assert rates == pytest.approx([0.99, 0.99 * 1448 / 1424], rel=1e-6)


def test_the_first_segments_are_not_paced_the_others_are() -> None:
    one = network({"rate_mbps": 100.0})
    one.advance(0.041)
    assert one.state.sub[0]["sent"] == 10
    assert one.link("b")["arrived"] == 11


def test_after_a_pause_the_application_limited_flow_paces_at_its_estimate() -> None:
    one = network(flow={"rate_mbps": 1.0})
    one.advance(6.0)
    s = one.state.sub[0]
    assert s["timeouts"] == 0
    assert int(one.connection(0)["data_rcv"]) == pytest.approx(6.0 * 1e6 / 8 / 1448, rel=0.02)
    assert s["bb_extra0"] <= 4


def test_forwarding_is_as_late_as_the_link_says_and_in_order() -> None:
    late = network(
        {"rate_mbps": None, "queue_packets": None, "lateness_us": (100.0, 900.0)},
        {"rate_mbps": 2.0, "cc": "reno", "ack_every": 1},
        log=True,
    )
    late.advance(60.0)
    rows = late.log_rows()
    delays = rows["value"][rows["variable"] == 0] - 40_000.0
    assert len(delays) > 8000
    assert float(np.median(delays)) == pytest.approx(100.0, rel=0.05)
    assert float(np.percentile(delays, 99)) == pytest.approx(900.0, rel=0.1)
    assert late.state.sub[0]["reordering"] == 0
