"""Pairs of a wireless LAN and a cellular link, drawn by seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.netsim.scenario import Scenario
from data.video.dash import POLL_MBPS

DURATION_S = 60.0


def drawn(pair: int, scheduler: str) -> Scenario:
    """A session over one pair; the same links for every scheduler.

    Mean rates are 0.5 to 6 Mbps, one-way delays 5 to 25 ms and 25 to 120 ms, losses up to 1 %,
    queues of 150 to 600 ms, drawn evenly in the logarithm; rates change as
    `data.netsim.traces.generate` makes them.
    """
    rng = np.random.default_rng([pair, 17])

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    links: dict[str, Any] = {}
    paths = []
    for kind, delays in (("wifi", (5.0, 25.0)), ("cellular", (25.0, 120.0))):
        mean, delay = between(0.5, 6.0), between(*delays)
        links[kind] = {
            "generate": {"kind": kind, "mean_mbps": mean, "duration_s": DURATION_S, "seed": pair},
            "delay_ms": delay,
            "loss": between(1e-4, 1e-2),
            "queue_packets": max(10, round(between(150.0, 600.0) * mean * 1e3 / 8 / 1500)),
        }
        links[f"{kind}-back"] = {"delay_ms": delay}
        paths.append({"forward": [kind], "back": [f"{kind}-back"]})
    flow = {"name": "video", "paths": paths, "rate_mbps": POLL_MBPS, "scheduler": scheduler,
            "window_bytes": 1_000_000}  # fmt: skip
    tree = {"duration_s": DURATION_S, "links": links, "flows": [flow]}
    return Scenario.parse(tree, f"pair {pair}")
