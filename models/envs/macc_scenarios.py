"""MA-CC's dumbbell among others: what its core carries besides what agents run."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.netsim.scenario import Scenario

_PATH = {"forward": ["access", "core"], "back": ["core_back", "back"]}
_CHANCES = {"cubic": 0.4, "bbr": 0.3, "short": 0.4}


def greedy_neighbours(rng: np.random.Generator) -> Scenario:
    """MA-CC's dumbbell with a deep queue and neighbours that no agent runs.

    One to three senders that agents run (Table 1: 3) share the core (30 Mbps, 280 ms) with a
    stream of UDP that heeds no loss: 20 to 50 Mbps, in bursts of 1 to 2.5 s on the average with
    3 to 6 s between them. Each of the following is there in some episodes: one or two connections
    that run CUBIC (4 of 10), as many that run BBR (3 of 10), and downloads of 0.5 to 3 MB, one
    every 5 s (4 of 10).

    The core's queue is deep, as those of home and mobile networks often are: 750 to 2000 packets,
    0.3 to 0.8 s. In a step of 0.2 s the core serves 500, so that a router that drops for one step
    can empty what a burst left without an idle link; Table 1's 385 packets don't last that long.
    """
    return _dumbbell(rng, int(rng.integers(1, 4)))


def many_senders(rng: np.random.Generator) -> Scenario:
    """`greedy_neighbours` with four to eight senders, for ``MaccParams(senders=8)``."""
    return _dumbbell(rng, int(rng.integers(4, 9)))


def _dumbbell(rng: np.random.Generator, senders: int) -> Scenario:
    queue = int(rng.integers(750, 2001))
    udp = {"path": _PATH["forward"], "rate_mbps": float(rng.uniform(20.0, 50.0)), "poisson": True,
           "on_s": float(rng.uniform(1.0, 2.5)), "off_s": float(rng.uniform(3.0, 6.0)),
           "random_on_off": True}  # fmt: skip
    flows: list[dict[str, Any]] = [{"name": "sender", "count": senders, "start_spread_s": 0.5}]
    for kind, chance in _CHANCES.items():
        there, count = rng.random() < chance, int(rng.integers(1, 3))
        size = round(float(rng.uniform(0.5e6, 3e6)))
        if there and kind == "short":
            flows.append({"name": kind, "count": 12, "cc": "cubic", "size_bytes": size,
                          "start_gap_s": 5.0})  # fmt: skip
        elif there:
            flows.append({"name": kind, "count": count, "cc": kind, "start_spread_s": 5.0})
    core = {"rate_mbps": 30.0, "delay_ms": 100.0, "queue_packets": queue, "queue": "agent"}
    tree = {
        "links": {
            "access": {"rate_mbps": 100.0, "delay_ms": 40.0, "queue_packets": 1000},
            "core": {**core, "loss": 0.0003, "loss_at": "exit"},
            "core_back": core,
            "back": {"rate_mbps": 100.0, "delay_ms": 40.0, "queue_packets": 1000},
        },
        "flows": [{**flow, "window_bytes": 8 << 20, "paths": [_PATH]} for flow in flows],
        "sources": [udp],
    }
    return Scenario.parse(tree, "greedy neighbours")
