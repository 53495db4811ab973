"""A subflow's ring grows with its window, and nothing else changes by that."""

from __future__ import annotations

from typing import Any

import pytest

from data.netsim import state as st
from data.netsim.network import Network
from data.netsim.scenario import Scenario

pytestmark = pytest.mark.xdist_group("netsim")


def lossy() -> Scenario:
    tree: dict[str, Any] = {
        "links": {
            "a": {"rate_mbps": 40.0, "delay_ms": 40.0, "queue_packets": 400, "loss": 0.0003},
            "b": {"rate_mbps": 10.0, "delay_ms": 60.0, "queue_packets": 200, "queue": "red"},
            "back": {"delay_ms": 40.0, "jitter_ms": 3.0, "reorder": True},
        },
        "flows": [
            {"name": "m", "paths": [
                {"forward": ["a"], "back": ["back"]},
                {"forward": ["b"], "back": ["back"]},
            ]},
            {"name": "s", "paths": [{"forward": ["a"], "back": ["back"]}]},
        ],
    }  # fmt: skip
    return Scenario.parse(tree, "test")


def outcome(first_ring: int, controller: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(st, "FIRST_RING", first_ring)
    network = Network(lossy(), controller, seed=4)
    lengths = [int(s["mask"]) + 1 for s in network.state.sub]
    network.advance(20.0)
    grown = [int(s["mask"]) + 1 for s in network.state.sub]
    fields = ["snd_una", "snd_nxt", "sent", "retransmitted", "rtt_sum", "delivered", "timeouts"]
    return lengths, grown, network.state.sub[fields].tolist(), network.state.conn["data_rcv"].sum()


@pytest.mark.parametrize("controller", ["reno", "cubic", "lia"])
def test_a_ring_that_grows_gives_what_a_full_one_gives(
    controller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, grown, *of_growing = outcome(16, controller, monkeypatch)
    full, kept, *of_full = outcome(8192, controller, monkeypatch)
    assert max(small) == 16 < min(grown)
    assert full == kept
    assert of_growing == of_full
