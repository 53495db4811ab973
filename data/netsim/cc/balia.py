"""BALIA: Peng, Walid, Hwang and Low 2016 (draft-walid-mptcp-congestion-control)."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.coupled import total_rate
from data.netsim.cc.reno import grow, past_slow_start
from data.netsim.jit import compiled

SUMMARY = "BALIA: balanced coupled increases and decreases (draft-walid-mptcp-congestion-control)"


@compiled
def _ratio(subs: Any, c: Any, s: Any) -> float:
    """Largest rate of a subflow over this subflow's."""
    best = 0.0
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = subs[k]
        if o.established != 0:
            best = max(best, o.cwnd / o.srtt)
    return float(best / (s.cwnd / s.srtt))


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Grow by x / (rtt * (sum x)**2) * (1 + a)/2 * (4 + a)/5 per segment acknowledged."""
    if c.sub_n == 1:
        reno.avoid(subs, c, s, acked, now)
        return
    acked = past_slow_start(s, acked)
    if acked == 0:
        return
    rate = total_rate(subs, c)
    a = _ratio(subs, c, s)
    rtt = s.srtt / 1e9
    grow(s, acked * s.cwnd / (rtt * rtt * rate * rate) * (1.0 + a) / 2.0 * (4.0 + a) / 5.0)


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """The window less half of it times min(a, 1.5)."""
    if c.sub_n == 1 or s.srtt == 0:
        return int(max(2, s.cwnd >> 1))
    return int(max(2, int(s.cwnd * (1.0 - min(_ratio(subs, c, s), 1.5) / 2.0))))
