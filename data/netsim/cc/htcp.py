"""H-TCP: Leith and Shorten 2004; Linux' tcp_htcp.c."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import limited, slow_start
from data.netsim.jit import compiled
from data.netsim.state import CWR, FAR, OPEN

SUMMARY = "H-TCP: growth by the time since the last loss, adaptive decrease (tcp_htcp.c)"
FIELDS = {
    "ht_alpha": "f8", "ht_beta": "f8", "ht_last": "i8", "ht_min": "i8", "ht_max": "i8",
    "ht_switch": "i8", "ht_bw": "f8", "ht_old_bw": "f8", "ht_count": "i8", "ht_mark": "i8",
}  # fmt: skip
_SECOND = 1_000_000_000


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Standard TCP for the first second."""
    s.ht_alpha = 1.0
    s.ht_beta = 0.5
    s.ht_last = now
    s.ht_min = FAR
    s.ht_mark = now


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """RTT extremes, and the largest delivery rate per RTT."""
    if rtt >= 0:
        s.ht_min = min(s.ht_min, rtt)
        if s.ca_state == OPEN:
            s.ht_max = max(s.ht_max, s.ht_min)
            if s.ht_max < s.srtt <= s.ht_max + 20_000_000:
                s.ht_max = s.srtt
    s.ht_count += acked
    if s.ca_state != OPEN:
        s.ht_count = 0
        s.ht_mark = now
    elif s.ht_min < FAR and now - s.ht_mark >= s.ht_min and s.ht_count >= s.cwnd:
        s.ht_bw = max(s.ht_bw, s.ht_count / (now - s.ht_mark))
        s.ht_count = 0
        s.ht_mark = now


@compiled
def _renew_alpha(s: Any, now: int) -> None:
    factor = 1.0
    over = (now - s.ht_last - _SECOND) / _SECOND
    if over > 0.0:
        factor = 1.0 + 10.0 * over + over * over / 4.0
    scale = min(10.0, max(0.5, 1e8 / max(1, min(s.ht_min, _SECOND))))
    factor = max(1.0, factor / scale)
    s.ht_alpha = 2.0 * factor * (1.0 - s.ht_beta)


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Grow by alpha per RTT."""
    if not limited(s):
        return
    if s.cwnd < s.ssthresh:
        slow_start(s, acked)
        return
    s.cwnd_cnt += acked
    if s.cwnd_cnt * s.ht_alpha >= s.cwnd:
        s.cwnd += 1
        s.cwnd_cnt = 0
        _renew_alpha(s, now)


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """The window less the share of the RTT that is queueing, unless the rate has changed much."""
    bw = s.ht_bw
    old = s.ht_old_bw
    s.ht_old_bw = bw
    s.ht_bw = 0.0
    if old > 0.0 and abs(bw - old) > 0.2 * old:
        s.ht_beta = 0.5
        s.ht_switch = 0
    elif s.ht_switch != 0 and 10_000_000 < s.ht_min < FAR and s.ht_max > 0:
        s.ht_beta = min(0.8, max(0.5, s.ht_min / s.ht_max))
    else:
        s.ht_beta = 0.5
        s.ht_switch = 1
    _renew_alpha(s, now)
    if s.ht_max > s.ht_min:
        s.ht_max = s.ht_min + (s.ht_max - s.ht_min) * 95 // 100
    return int(max(2, int(s.cwnd * s.ht_beta)))


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """Any congestion starts the clock again."""
    if state >= CWR:
        s.ht_last = now
