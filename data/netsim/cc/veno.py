"""Veno: Fu and Liew 2003; Linux' tcp_veno.c (beta 3)."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.reno import additive, limited, slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR, OPEN

SUMMARY = "Veno: Reno that takes losses with a short queue for random ones (tcp_veno.c)"
FIELDS = {"vn_base": "i8", "vn_min": "i8", "vn_count": "i8", "vn_on": "i8", "vn_odd": "i8",
          "vn_queue": "i8"}  # fmt: skip
_BETA = 6
"""Three segments, in halves."""


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.vn_base = FAR
    s.vn_min = FAR
    s.vn_on = 1
    s.vn_odd = 1


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """Measure in Open alone."""
    s.vn_on = 1 if state == OPEN else 0
    if state == OPEN:
        s.vn_min = FAR
        s.vn_count = 0


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Smallest RTT ever, and since the last step."""
    if rtt >= 0:
        s.vn_base = min(s.vn_base, rtt)
        s.vn_min = min(s.vn_min, rtt)
        s.vn_count += 1


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Four fifths if the loss looks random, else half."""
    if s.vn_queue < _BETA:
        return int(max(s.cwnd * 4 // 5, 2))
    return int(max(s.cwnd >> 1, 2))


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Reno's growth, halved once the queue is long."""
    if s.vn_on == 0 or s.vn_count <= 2 or s.vn_min == FAR:
        reno.avoid(subs, c, s, acked, now)
        return
    if not limited(s):
        return
    s.vn_queue = 2 * s.cwnd - 2 * s.cwnd * s.vn_base // s.vn_min
    s.vn_min = FAR
    if s.cwnd < s.ssthresh:
        acked = slow_start(s, acked)
        if acked == 0:
            return
    if s.vn_queue < _BETA:
        additive(s, s.cwnd, acked)
    elif s.cwnd_cnt >= s.cwnd:
        if s.vn_odd != 0:
            s.cwnd += 1
            s.vn_odd = 0
        else:
            s.vn_odd = 1
        s.cwnd_cnt = 0
    else:
        s.cwnd_cnt += acked
