"""Hybla: Caini and Firrincieli 2004; Linux' tcp_hybla.c (reference RTT 25 ms)."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import limited
from data.netsim.jit import compiled

SUMMARY = "Hybla: growth as if the RTT were 25 ms (tcp_hybla.c)"
_REFERENCE = 25e6


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """2**rho - 1 per ACK in slow start, rho**2 per RTT after, rho the RTT over 25 ms."""
    if not limited(s):
        return
    rho = max(1.0, min(s.min_rtt, s.srtt) / _REFERENCE)
    if s.cwnd < s.ssthresh:
        s.growth += acked * (2.0 ** min(rho, 16.0) - 1.0)
        room = s.ssthresh - s.cwnd
    else:
        s.growth += acked * rho * rho / s.cwnd
        room = s.cwnd
    steps = int(min(s.growth, 1e6))
    s.growth -= steps
    s.cwnd += min(steps, room)
