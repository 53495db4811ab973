"""New Vegas: after Linux' tcp_nv.c (Brakmo 2015) with its default parameters."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import limited, slow_start
from data.netsim.jit import compiled
from data.netsim.state import CWR, FAR

SUMMARY = "New Vegas: keeps the window near rate times base RTT plus 10 segments (tcp_nv.c)"
FIELDS = {
    "nv_end": "i8", "nv_rtt": "i8", "nv_min": "i8", "nv_min_new": "i8", "nv_renew": "i8",
    "nv_rate": "f8", "nv_calls": "i8", "nv_rounds": "i8", "nv_grow": "i8",
}  # fmt: skip
_PAD, _PAD_BUFFER, _RENEW = 10, 2, 5_000_000_000


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.nv_min = FAR
    s.nv_min_new = FAR
    s.nv_renew = now + _RENEW
    s.nv_end = s.snd_nxt
    s.nv_grow = 1


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Largest rate of a round against the window: above it congestion, below it room."""
    if rtt < 0 or s.ca_state >= CWR:
        return
    s.nv_rtt = (rtt + s.nv_rtt) // 2 if s.nv_rtt > 0 else rtt
    flight = s.snd_nxt - s.snd_una - s.sacked_out + acked
    s.nv_rate = max(s.nv_rate, flight / s.nv_rtt)
    s.nv_calls += 1
    s.nv_min = min(s.nv_min, s.nv_rtt)
    s.nv_min_new = min(s.nv_min_new, s.nv_rtt)
    if now >= s.nv_renew:
        s.nv_min = s.nv_min_new
        s.nv_min_new = FAR
        s.nv_renew = now + _RENEW
    if s.snd_una <= s.nv_end:
        return
    s.nv_end = s.snd_nxt
    s.nv_rounds += 1
    most = max(2, int(s.nv_rate * s.nv_min))
    if s.cwnd > most + _PAD:
        if s.nv_rounds < 2:
            return
        if s.nv_calls < (30 if s.ssthresh == FAR else 60):
            if s.nv_grow != 0 and s.nv_rounds > 10:
                s.nv_grow = 0
            return
        s.nv_grow = 0
        s.ssthresh = most
        if s.cwnd - most > 2:
            s.cwnd -= max(2, (s.cwnd - most) * 38 >> 7)
        else:
            s.cwnd = most
    elif s.cwnd <= most + _PAD - _PAD_BUFFER:
        if s.nv_rounds < 2 or s.nv_calls < 20:
            return
        s.nv_grow = 1
    else:
        return
    s.nv_calls = 0
    s.nv_rounds = 0
    s.nv_rate = 0.0


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Reno's growth if growth is allowed."""
    if s.nv_grow == 0 or not limited(s):
        return
    if s.cwnd < s.ssthresh:
        slow_start(s, acked)
        return
    s.cwnd_cnt += acked
    if s.cwnd_cnt >= s.cwnd:
        s.cwnd_cnt -= s.cwnd
        s.cwnd += 1


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Four fifths of the window."""
    return int(max(2, int(s.cwnd * 0.8)))
