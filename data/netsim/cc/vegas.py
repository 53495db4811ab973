"""Vegas: Brakmo and Peterson 1995, as in Linux' tcp_vegas.c (alpha 2, beta 4, gamma 1)."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.reno import slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR, OPEN

SUMMARY = "Vegas: keeps 2 to 4 segments queued (tcp_vegas.c)"
FIELDS = {"ve_end": "i8", "ve_base": "i8", "ve_min": "i8", "ve_count": "i8", "ve_on": "i8"}


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.ve_base = FAR
    _enable(s)


@compiled
def _enable(s: Any) -> None:
    s.ve_on = 1
    s.ve_end = s.snd_nxt
    s.ve_min = FAR
    s.ve_count = 0


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """Measure in Open alone."""
    if state == OPEN:
        _enable(s)
    else:
        s.ve_on = 0


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Smallest RTT ever, and of this round."""
    if rtt >= 0:
        s.ve_base = min(s.ve_base, rtt)
        s.ve_min = min(s.ve_min, rtt)
        s.ve_count += 1


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Once a round: one segment more, less, or none."""
    if s.ve_on == 0:
        reno.avoid(subs, c, s, acked, now)
        return
    if s.snd_una <= s.ve_end:
        if s.cwnd < s.ssthresh:
            slow_start(s, acked)
        return
    s.ve_end = s.snd_nxt
    if s.ve_count <= 2:
        reno.avoid(subs, c, s, acked, now)
    else:
        target = s.cwnd * s.ve_base // s.ve_min
        surplus = s.cwnd * (s.ve_min - s.ve_base) // s.ve_base
        if s.cwnd < s.ssthresh:
            if surplus > 1:
                s.cwnd = min(s.cwnd, target + 1)
                s.ssthresh = min(s.ssthresh, s.cwnd)
            else:
                slow_start(s, acked)
        elif surplus > 4:
            s.cwnd -= 1
            s.ssthresh = min(s.ssthresh, s.cwnd)
        elif surplus < 2:
            s.cwnd += 1
        s.cwnd = max(s.cwnd, 2)
        if s.ssthresh < FAR:
            s.ssthresh = max(s.ssthresh, (s.cwnd >> 1) + (s.cwnd >> 2))
    s.ve_min = FAR
    s.ve_count = 0
