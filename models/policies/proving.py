"""Scenarios in which a policy is proved before it is released, in families, and its figures there.

They are small and fixed, no training draws from them, and their digest stands beside every figure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data.netsim.metrics import simulate
from data.netsim.scenario import Scenario
from models.closedloop import Player

FAMILIES: dict[str, tuple[dict[str, Any], ...]] = {
    "steady": ({"rate_mbps": 24.0}, {"rate_mbps": 60.0, "delay_ms": 10.0}),
    "stepping": ({"steps": [[0.0, 40.0], [2.0, 20.0]], "period_s": 4.0},),
    "lossy": ({"rate_mbps": 24.0, "loss": 0.002},),
    "shallow": ({"rate_mbps": 24.0, "queue_packets": 25},),
}
"""Family -> settings of the link that flows go through (of each link, with several paths)."""
LINK = {"delay_ms": 20.0, "queue_packets": 120}
DURATION_S, WARMUP_S = 14.0, 4.0
BESIDE = "beside cubic"
"""Name of the family in which a CUBIC flow shares the first link."""


def scenarios(paths: int) -> dict[str, list[Scenario]]:
    """Family -> scenarios of a flow over so many like paths.

    Parameters
    ----------
    paths : int
    """
    found = {family: [_one(link, paths) for link in links] for family, links in FAMILIES.items()}
    return {**found, BESIDE: [_one({"rate_mbps": 24.0}, paths, beside=True)]}


def digest(sets: Mapping[str, Sequence[Scenario]]) -> str:
    """SHA-256 of scenarios."""
    tree = {family: [one.model_dump(mode="json") for one in of] for family, of in sets.items()}
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def paths_of(player: Player) -> int:
    """Paths of the flows that a policy is proved with."""
    return min(2, player.policy.layout.parts) if player.policy.environment == "tcco" else 1


def powers(player: Player, sets: Mapping[str, Sequence[Scenario]], seeds: int) -> dict[str, Any]:
    """Power (goodput over RTT) as a multiple of CUBIC's on the same scenario and seed.

    Returns
    -------
    dict
        Family -> float64 array [scenarios * seeds]; and under ``neighbour`` what the CUBIC flow
        beside it gets, as a multiple of what it gets beside another CUBIC.
    """
    found: dict[str, Any] = {}
    for family, of in sets.items():
        episodes = [(spec, seed) for spec in of for seed in range(seeds)]
        own = player.play(episodes)
        cubic = [simulate(spec, "cubic", seed) for spec, seed in episodes]
        pairs = list(zip(own, cubic, strict=True))
        found[family] = np.array([_power(one) / _power(other) for one, other in pairs])
        if family == BESIDE:
            shares = [one["flows"]["cubic"] / other["flows"]["cubic"] for one, other in pairs]
            found["neighbour"] = np.array(shares)
    return found


def _power(row: Mapping[str, Any]) -> float:
    return float(row["flows"]["flow"] / row["rtt_ms"]) if "rtt_ms" in row else 0.0


def _one(link: Mapping[str, Any], paths: int, beside: bool = False) -> Scenario:
    names = [f"link{k}" for k in range(paths)]
    routes = [{"forward": [name], "back": ["back"]} for name in names]
    flows: list[dict[str, Any]] = [{"name": "flow", "start_spread_s": 0.5, "paths": routes}]
    if beside:
        flows.append({"name": "cubic", "cc": "cubic", "start_spread_s": 0.5, "paths": routes[:1]})
    tree = {
        "duration_s": DURATION_S,
        "warmup_s": WARMUP_S,
        "bottleneck": "link0",
        "links": {**{name: {**LINK, **link} for name in names}, "back": {"delay_ms": 10.0}},
        "flows": flows,
    }
    return Scenario.parse(tree, "proving")
