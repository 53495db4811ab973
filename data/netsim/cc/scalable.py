"""Scalable TCP: Kelly 2003; Linux' tcp_scalable.c."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import additive, limited, slow_start
from data.netsim.jit import compiled

SUMMARY = "Scalable TCP: one per cent per RTT, an eighth less on loss (tcp_scalable.c)"


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """One segment for every hundred acknowledged."""
    if not limited(s):
        return
    if s.cwnd < s.ssthresh:
        acked = slow_start(s, acked)
        if acked == 0:
            return
    additive(s, min(s.cwnd, 100), acked)


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Seven eighths of the window."""
    return int(max(2, s.cwnd - (s.cwnd >> 3)))
