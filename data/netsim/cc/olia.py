"""OLIA: Khalili et al. 2013 (draft-khalili-mptcp-congestion-control)."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.coupled import total_rate
from data.netsim.cc.reno import grow, past_slow_start
from data.netsim.jit import compiled
from data.netsim.state import CWR

SUMMARY = "OLIA: opportunistic coupled increases (draft-khalili-mptcp-congestion-control)"
FIELDS = {"ol_now": "i8", "ol_before": "i8"}


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Count what arrives between losses."""
    s.ol_now += acked


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """A loss ends the count."""
    if state >= CWR and s.ca_state < CWR:
        s.ol_before = s.ol_now
        s.ol_now = 0


@compiled
def _quality(o: Any) -> float:
    """Segments between losses, squared, over the RTT: the larger the better the path."""
    span = max(1, o.ol_now, o.ol_before)
    return float(span * span / o.srtt)


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Kelly-Voice term plus alpha, which moves window to good paths with small windows."""
    if c.sub_n == 1:
        reno.avoid(subs, c, s, acked, now)
        return
    acked = past_slow_start(s, acked)
    if acked == 0:
        return
    best = 0.0
    largest = 0
    paths = 0
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = subs[k]
        if o.established != 0:
            paths += 1
            best = max(best, _quality(o))
            largest = max(largest, o.cwnd)
    collected = 0
    biggest = 0
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = subs[k]
        if o.established != 0:
            if o.cwnd == largest:
                biggest += 1
            elif _quality(o) >= best:
                collected += 1
    alpha = 0.0
    if collected > 0:
        if s.cwnd == largest:
            alpha = -1.0 / (paths * biggest)
        elif _quality(s) >= best:
            alpha = 1.0 / (paths * collected)
    rtt = s.srtt / 1e9
    rate = total_rate(subs, c)
    grow(s, acked * (s.cwnd / (rtt * rtt) / (rate * rate) + alpha / s.cwnd))
