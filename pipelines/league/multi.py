"""Draw scenarios of one connection under test on two or three paths; every queue is FIFO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipelines.league.draw import packets, pick, tree
from pipelines.league.families import Range
from pipelines.league.single import generated, steps

Ranges = Mapping[str, Range]
_ACCESS = 4.0
"""An access link is so many times as fast as the shared bottleneck: it never fills."""


def separate(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw paths with a bottleneck each."""
    links: dict[str, Any] = {}
    names = _names(rng, ranges)
    for name in names:
        rate, rtt = pick(rng, ranges, "rate_mbps"), pick(rng, ranges, "rtt_ms")
        kind = rng.choice(["constant", "constant", "stepping", "trace"])
        if kind == "constant":
            link: dict[str, Any] = {"rate_mbps": rate}
        else:
            link = steps(rng, ranges, rate) if kind == "stepping" else generated(rng, rate)
        queue = packets(rate, rtt * pick(rng, ranges, "queue"))
        links[name] = {**link, "delay_ms": rtt / 2, "queue_packets": queue}
        links[f"{name}_back"] = {"delay_ms": rtt / 2}
    return tree(links, names)


def shared(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw paths that share a bottleneck."""
    return _shared(rng, ranges)


def friendly(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw paths that share a bottleneck with a connection that runs CUBIC over the first."""
    return _shared(rng, ranges, neighbours=1, settles=True)


def _shared(rng: np.random.Generator, ranges: Ranges, **more: Any) -> dict[str, Any]:
    rate, names = pick(rng, ranges, "rate_mbps"), _names(rng, ranges)
    rtts = [pick(rng, ranges, "rtt_ms") for _ in names]
    mean = sum(rtts) / len(rtts)
    links: dict[str, Any] = {}
    for name, rtt in zip(names, rtts, strict=True):
        links[name] = {"rate_mbps": _ACCESS * rate, "delay_ms": rtt / 2}
        links[f"{name}_back"] = {"delay_ms": rtt / 2}
    queue = packets(rate, mean * pick(rng, ranges, "queue"))
    links["bottleneck"] = {"rate_mbps": rate, "queue_packets": queue}
    return {**tree(links, names, **more), "bottleneck": "bottleneck"}


def _names(rng: np.random.Generator, ranges: Ranges) -> list[str]:
    return [f"path{i}" for i in range(int(pick(rng, ranges, "paths")))]
