"""Draw scenarios of one flow under test on one path; every queue is FIFO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from data.netsim.wireless import KINDS
from pipelines.league.draw import digits, packets, pick, tree
from pipelines.league.families import Range

Ranges = Mapping[str, Range]


def constant(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw a link of constant rate."""
    rate, rtt = pick(rng, ranges, "rate_mbps"), pick(rng, ranges, "rtt_ms")
    queue = packets(rate, rtt * pick(rng, ranges, "queue"))
    return _on({"rate_mbps": rate, "queue_packets": queue}, rtt)


def stepping(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw a link whose rate steps, and in half of the cases its delay too."""
    rate, rtt = pick(rng, ranges, "rate_mbps"), pick(rng, ranges, "rtt_ms")
    link: dict[str, Any] = {
        **steps(rng, ranges, rate),
        "queue_packets": packets(rate, rtt * pick(rng, ranges, "queue")),
    }
    if rng.random() < 0.5:
        longer = digits(rtt * (pick(rng, ranges, "detour") - 0.5))
        span = pick(rng, ranges, "step_s")
        link |= {"delay_steps": [[0.0, rtt / 2], [span, longer]], "delay_period_s": 2 * span}
    return _on(link, rtt)


def traced(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw a link with a generated trace."""
    rate, rtt = pick(rng, ranges, "rate_mbps"), pick(rng, ranges, "rtt_ms")
    queue = packets(rate, pick(rng, ranges, "queue_ms"))
    return _on({**generated(rng, rate), "queue_packets": queue}, rtt)


def lossy(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw a link of constant rate with random losses, single ones or bursts of the same share."""
    rate, rtt = pick(rng, ranges, "rate_mbps"), pick(rng, ranges, "rtt_ms")
    link: dict[str, Any] = {
        "rate_mbps": rate,
        "queue_packets": packets(rate, rtt * pick(rng, ranges, "queue")),
    }
    loss, burst = pick(rng, ranges, "loss"), pick(rng, ranges, "burst")
    if rng.random() < 1 / 3:
        # The bad state loses every packet; its share of all packets is the loss.
        link["gilbert"] = {"to_good": digits(1 / burst), "to_bad": digits(loss / burst)}
    else:
        link["loss"] = loss
    return _on(link, rtt)


def friendly(rng: np.random.Generator, ranges: Ranges) -> dict[str, Any]:
    """Draw a link of constant rate that is shared with flows that run CUBIC."""
    rate, rtt = pick(rng, ranges, "rate_mbps"), pick(rng, ranges, "rtt_ms")
    queue = packets(rate, rtt * pick(rng, ranges, "queue"))
    count = int(pick(rng, ranges, "neighbours"))
    return _on({"rate_mbps": rate, "queue_packets": queue}, rtt, neighbours=count, settles=True)


def steps(rng: np.random.Generator, ranges: Ranges, rate_mbps: float) -> dict[str, Any]:
    """Draw two to four levels of a rate, each for a while, again and again."""
    at, pairs = 0.0, []
    for _ in range(int(rng.integers(2, 5))):
        pairs.append([round(at, 3), digits(rate_mbps * pick(rng, ranges, "level"))])
        at += pick(rng, ranges, "step_s")
    return {"steps": pairs, "period_s": round(at, 3)}


def generated(rng: np.random.Generator, mean_mbps: float) -> dict[str, Any]:
    """Draw a generated trace of one of the kinds that vary as measured ones do."""
    kind, seed = str(rng.choice(list(KINDS))), int(rng.integers(1 << 31))
    return {"generate": {"kind": kind, "mean_mbps": mean_mbps, "duration_s": 30.0, "seed": seed}}


def _on(link: Mapping[str, Any], rtt_ms: float, **more: Any) -> dict[str, Any]:
    there = dict(link) if "delay_steps" in link else {**link, "delay_ms": rtt_ms / 2}
    found = tree({"link": there, "link_back": {"delay_ms": rtt_ms / 2}}, ["link"], **more)
    return {**found, "bottleneck": "link"}
