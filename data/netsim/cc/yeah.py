"""YeAH: Baiocchi, Castellani and Vacirca 2007; Linux' tcp_yeah.c."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import additive, limited, slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR

SUMMARY = "YeAH: scalable while the queue is short, Reno and decongestion after (tcp_yeah.c)"
FIELDS = {
    "ye_end": "i8", "ye_base": "i8", "ye_min": "i8", "ye_count": "i8", "ye_reno": "i8",
    "ye_reno_wnd": "i8", "ye_fast": "i8", "ye_queue": "i8",
}  # fmt: skip
_ALPHA, _PHI, _RHO, _ZETA, _SCALABLE = 80, 8, 16, 50, 100


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.ye_base = FAR
    s.ye_min = FAR
    s.ye_reno_wnd = 2


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Smallest RTT ever, and of this round."""
    if rtt >= 0:
        s.ye_base = min(s.ye_base, rtt)
        s.ye_min = min(s.ye_min, rtt)
        s.ye_count += 1


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Grow in the present mode; once a round choose the mode and drain the queue."""
    if not limited(s):
        return
    if s.cwnd < s.ssthresh:
        acked = slow_start(s, acked)
    if acked > 0:
        additive(s, min(s.cwnd, _SCALABLE) if s.ye_reno == 0 else s.cwnd, acked)
    if s.snd_una <= s.ye_end:
        return
    if s.ye_count > 2:
        rtt = s.ye_min
        queue = s.cwnd * (rtt - s.ye_base) // rtt
        if queue > _ALPHA or rtt - s.ye_base > s.ye_base // _PHI:
            if queue > _ALPHA and s.cwnd > s.ye_reno_wnd:
                s.cwnd = max(s.cwnd - min(queue, s.cwnd >> 1), s.ye_reno_wnd)
                s.ssthresh = s.cwnd
            if s.ye_reno_wnd <= 2:
                s.ye_reno_wnd = max(s.cwnd >> 1, 2)
            else:
                s.ye_reno_wnd += 1
            s.ye_reno += 1
        else:
            s.ye_fast += 1
            if s.ye_fast > _ZETA:
                s.ye_reno_wnd = 2
                s.ye_fast = 0
            s.ye_reno = 0
        s.ye_queue = queue
    s.ye_end = s.snd_nxt
    s.ye_count = 0
    s.ye_min = FAR


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """The window less the queue that was there, or half of it after long competition."""
    half = max(s.cwnd >> 1, 2)
    if s.ye_reno < _RHO:
        cut = max(min(s.ye_queue, half), s.cwnd >> 3)
    else:
        cut = half
    s.ye_fast = 0
    s.ye_reno_wnd = max(s.ye_reno_wnd >> 1, 2)
    return int(max(s.cwnd - cut, 2))
