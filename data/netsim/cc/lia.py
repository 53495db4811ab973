"""LIA, the coupled increases of MPTCP: RFC 6356."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.coupled import total_rate
from data.netsim.cc.reno import grow, past_slow_start
from data.netsim.jit import compiled

SUMMARY = "LIA: coupled increases over the subflows of a connection (RFC 6356)"


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """min(alpha / total window, 1 / window) per segment acknowledged."""
    if c.sub_n == 1:
        reno.avoid(subs, c, s, acked, now)
        return
    acked = past_slow_start(s, acked)
    if acked == 0:
        return
    total = 0.0
    best = 0.0
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = subs[k]
        if o.established != 0:
            rtt = o.srtt / 1e9
            total += o.cwnd
            best = max(best, o.cwnd / (rtt * rtt))
    rate = total_rate(subs, c)
    alpha = total * best / (rate * rate)
    grow(s, acked * min(alpha / total, 1.0 / s.cwnd))
