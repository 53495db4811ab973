"""A sender's log is summed up in a few numbers, for kernel and simulator alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.store import Series

BURST_US = 50
"""New ACKs closer than this came in one batch: no link here is so fast."""


def of(series: Series) -> dict[str, Any]:
    """Goodput, round-trip times and retransmissions of a connection.

    Parameters
    ----------
    series : Series
        ``ack`` (bytes from the subflow's first on), ``rtt_us`` and ``retransmit`` of each subflow.

    Returns
    -------
    dict
        ``goodput_mbps`` (acknowledged, from the first ACK to the last), ``rtt_ms`` and
        ``rtt_p95_ms`` (over ACKs, mean of the subflows), ``retransmits`` (events), ``bursts``
        (share of new ACKs within 50 us of the one before, mean of the subflows), and
        ``subflows``: number to its own ``goodput_mbps``, ``rtt_ms``, ``rtt_p95_ms``,
        ``retransmits``. Empty if a subflow has no ACK or no RTT.
    """
    spans = [v["ack"][0] for v in series.values() if "ack" in v]
    if not spans or any("ack" not in v or "rtt_us" not in v for v in series.values()):
        return {}
    span_us = max(1, max(int(t[-1]) for t in spans) - min(int(t[0]) for t in spans))
    subflows: dict[str, dict[str, float]] = {}
    bursts = []
    for number, variables in sorted(series.items()):
        time_us, acked = variables["ack"]
        rtt_us = variables["rtt_us"][1]
        subflows[str(number)] = {
            "goodput_mbps": round(8 * float(acked.max() - acked.min()) / span_us, 4),
            "rtt_ms": round(float(rtt_us.mean()) / 1e3, 3),
            "rtt_p95_ms": round(float(np.percentile(rtt_us, 95)) / 1e3, 3),
            "retransmits": len(variables["retransmit"][0]) if "retransmit" in variables else 0,
        }
        fresh = np.diff(acked) > 0
        if fresh.any():
            bursts.append(float((np.diff(time_us)[fresh] < BURST_US).mean()))
    flows = list(subflows.values())
    return {
        "goodput_mbps": round(sum(flow["goodput_mbps"] for flow in flows), 4),
        "rtt_ms": round(float(np.mean([flow["rtt_ms"] for flow in flows])), 3),
        "rtt_p95_ms": round(float(np.mean([flow["rtt_p95_ms"] for flow in flows])), 3),
        "retransmits": sum(flow["retransmits"] for flow in flows),
        "bursts": round(float(np.mean(bursts)), 5) if bursts else 0.0,
        "subflows": subflows,
    }
