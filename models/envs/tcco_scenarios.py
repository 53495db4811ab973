"""Scenarios of TCCO with steady paths, one bottleneck for both subflows, or a TCP flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.netsim.scenario import Scenario

_PACKET_BITS = 12_000


def steady_paths(rng: np.random.Generator) -> Scenario:
    """Two like paths of 300 to 600 Mbps that hardly change, with shallow queues (Figs. 9 and 10).

    Delays are 1 to 5 ms one way and step between two values by themselves, queues hold 50 to
    300 packets, and a third of the episodes lose up to 1 % (Fig. 9b-d).
    """
    rate = float(rng.uniform(300.0, 600.0))
    loss = float(rng.choice([0.0, 0.0, 1.0])) * float(rng.uniform(0.0005, 0.01))
    queue = int(rng.integers(50, 301))
    links: dict[str, Any] = {"back": {"rate_mbps": rate, "jitter_ms": 0.1}}
    for name in ("one", "two"):
        period, low = float(rng.uniform(1.0, 4.0)), float(rng.uniform(1.0, 3.0))
        links[name] = {
            "rate_mbps": rate,
            "delay_steps": [[0.0, low], [period / 2, low + float(rng.uniform(0.0, 2.0))]],
            "delay_period_s": period,
            "queue_packets": queue,
            "loss": loss,
        }
    paths = [{"forward": [name], "back": ["back"]} for name in ("one", "two")]
    return Scenario.parse({"links": links, "flows": [{"name": "mptcp", "paths": paths}]}, "steady")


def one_bottleneck(rng: np.random.Generator) -> Scenario:
    """Both subflows behind one link (Fig. 8b, Fig. 11).

    It has 50 to 1000 Mbps and a base RTT of 3 to 100 ms (both log-uniform), and a queue of 0.3 to
    3 times its product.
    """
    rate, rtt_ms = log_uniform(rng, 50.0, 1000.0), log_uniform(rng, 3.0, 100.0)
    core = {"rate_mbps": rate, "delay_ms": rtt_ms / 2, "queue_packets": _queue(rng, rate, rtt_ms)}
    links = {
        "access": {"rate_mbps": 1000, "queue_packets": 1000, "jitter_ms": 0.1},
        "access2": {"rate_mbps": 1000, "queue_packets": 1000, "jitter_ms": 0.1},
        "core": core,
        "back": {"delay_ms": rtt_ms / 2},
    }
    paths = [{"forward": [name, "core"], "back": ["back"]} for name in ("access", "access2")]
    flow = {"name": "mptcp", "paths": paths, "window_bytes": _window(rate, rtt_ms)}
    return Scenario.parse({"links": links, "flows": [flow]}, "one bottleneck")


def beside_tcp(rng: np.random.Generator) -> Scenario:
    """A path of its own, and one that a TCP flow shares (Fig. 8c, Table II).

    Paths have 20 to 200 Mbps and base RTTs of 10 to 100 ms (log-uniform), queues of 0.3 to 3
    times their product and at least 20 packets; the other flow runs CUBIC, Reno, Westwood or BBR.
    """
    links: dict[str, Any] = {}
    windows = []
    for name in ("shared", "own"):
        rate, rtt_ms = log_uniform(rng, 20.0, 200.0), log_uniform(rng, 10.0, 100.0)
        links[name] = {"rate_mbps": rate, "delay_ms": rtt_ms / 2,
                       "queue_packets": max(20, _queue(rng, rate, rtt_ms))}  # fmt: skip
        links[f"{name}_back"] = {"delay_ms": rtt_ms / 2, "jitter_ms": 0.1}
        windows.append(_window(rate, rtt_ms))
    paths = [{"forward": [name], "back": [f"{name}_back"]} for name in ("shared", "own")]
    other = str(rng.choice(["cubic", "reno", "westwood", "bbr"]))
    flows = [
        {"name": "mptcp", "paths": paths, "window_bytes": sum(windows)},
        {"name": "tcp", "cc": other, "start_spread_s": 5.0, "paths": paths[:1],
         "window_bytes": windows[0]},
    ]  # fmt: skip
    return Scenario.parse({"links": links, "flows": flows}, "beside TCP")


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between two, whose logarithm is drawn evenly."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _queue(rng: np.random.Generator, rate_mbps: float, rtt_ms: float) -> int:
    product = rate_mbps * 1e3 * rtt_ms / _PACKET_BITS
    return max(10, round(product * float(rng.uniform(0.3, 3.0))))


def _window(rate_mbps: float, rtt_ms: float) -> int:
    """Bytes that a receiver takes: four products, what a path with the longest queue holds."""
    return max(6 << 20, round(4 * rate_mbps * 125 * rtt_ms))
