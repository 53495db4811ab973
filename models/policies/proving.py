"""Scenarios in which routers are proved before they are released: the league's queues are FIFO.

They are small and fixed, and no training draws from them. What routers get there is compared with
the same sender, NewReno, behind FIFO queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from data.netsim.scenario import Scenario

FAMILIES: dict[str, tuple[dict[str, Any], ...]] = {
    "steady": ({"rate_mbps": 24.0}, {"rate_mbps": 60.0, "delay_ms": 10.0}),
    "stepping": ({"steps": [[0.0, 40.0], [2.0, 20.0]], "period_s": 4.0},),
    "lossy": ({"rate_mbps": 24.0, "loss": 0.002},),
    "shallow": ({"rate_mbps": 24.0, "queue_packets": 25},),
}
"""Family -> settings of the link that the flow goes through, whose queue the router runs."""
LINK = {"delay_ms": 20.0, "queue_packets": 120}
DURATION_S, WARMUP_S = 14.0, 4.0
BESIDE = "beside cubic"
"""Name of the family in which a CUBIC flow shares the link."""


def scenarios() -> dict[str, list[Scenario]]:
    """Family -> scenarios."""
    found = {family: [_one(link) for link in links] for family, links in FAMILIES.items()}
    return {**found, BESIDE: [_one({"rate_mbps": 24.0}, beside=True)]}


def _one(link: Mapping[str, Any], beside: bool = False) -> Scenario:
    routes = [{"forward": ["link"], "back": ["back"]}]
    flows: list[dict[str, Any]] = [{"name": "flow", "start_spread_s": 0.5, "paths": routes}]
    if beside:
        flows.append({"name": "cubic", "cc": "cubic", "start_spread_s": 0.5, "paths": routes})
    tree = {
        "duration_s": DURATION_S,
        "warmup_s": WARMUP_S,
        "bottleneck": "link",
        "links": {"link": {**LINK, **link}, "back": {"delay_ms": 10.0}},
        "flows": flows,
    }
    return Scenario.parse(tree, "proving")
