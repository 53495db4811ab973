"""A DASH-like session, by what a viewer sees of it."""

from __future__ import annotations

from data.netsim.scenario import Scenario
from data.video.dash import LADDER_MBPS, POLL_MBPS, watch


def session(rate_mbps: float) -> dict[str, float]:
    path = {"forward": ["a"], "back": ["r"]}
    tree = {
        "duration_s": 20,
        "links": {"a": {"rate_mbps": rate_mbps, "delay_ms": 10.0, "queue_packets": 50},
                  "r": {"delay_ms": 10.0}},
        "flows": [{"name": "v", "rate_mbps": POLL_MBPS, "scheduler": "qos", "paths": [path, path]}],
    }  # fmt: skip
    found = watch(Scenario.parse(tree, "test"), "lia", seed=1)
    return {name: float(values[0]) for name, values in found.items()}


def test_a_fast_link_shows_the_best_rates_without_a_stall() -> None:
    seen = session(30.0)
    assert seen["stalls"] == seen["stalled_s"] == 0
    assert seen["startup_s"] < 0.3
    assert 0.8 * LADDER_MBPS[-1] < seen["rate_mbps"] <= LADDER_MBPS[-1]


def test_a_link_slower_than_the_ladder_stalls() -> None:
    slow, fast = session(0.3), session(3.0)
    assert slow["stalls"] > 0
    assert slow["stalled_s"] > 3
    assert slow["psnr_db"] < fast["psnr_db"] - 3
    assert fast["rate_mbps"] < 3.0
