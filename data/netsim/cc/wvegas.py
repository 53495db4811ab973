"""wVegas: Cao, Xu and Fu 2012 (draft-xu-mptcp-congestion-control): weighted Vegas."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.reno import slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR, OPEN

SUMMARY = "wVegas: delay-based coupling, 10 segments queued over all subflows together"
FIELDS = {
    "wv_end": "i8", "wv_base": "i8", "wv_sum": "i8", "wv_count": "i8", "wv_on": "i8",
    "wv_alpha": "f8", "wv_rate": "f8", "wv_weight": "f8", "wv_queue": "i8",
}  # fmt: skip
_TOTAL_ALPHA, _GAMMA = 10.0, 1.0


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.wv_base = FAR
    s.wv_queue = FAR
    s.wv_weight = 1.0 / c.sub_n
    s.wv_alpha = 2.0
    _enable(s)


@compiled
def _enable(s: Any) -> None:
    s.wv_on = 1
    s.wv_end = s.snd_nxt
    s.wv_sum = 0
    s.wv_count = 0


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """Measure in Open alone."""
    if state == OPEN:
        _enable(s)
    else:
        s.wv_on = 0


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Base and mean RTT."""
    if rtt >= 0:
        s.wv_base = min(s.wv_base, rtt)
        s.wv_sum += rtt
        s.wv_count += 1


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Vegas with a share of the backlog that follows the share of the rate."""
    if s.wv_on == 0:
        reno.avoid(subs, c, s, acked, now)
        return
    if s.snd_una <= s.wv_end:
        if s.cwnd < s.ssthresh:
            slow_start(s, acked)
        return
    s.wv_end = s.snd_nxt
    if s.wv_count <= 2:
        reno.avoid(subs, c, s, acked, now)
    else:
        rtt = s.wv_sum // s.wv_count
        target = s.cwnd * s.wv_base // rtt
        backlog = s.cwnd * (rtt - s.wv_base) / rtt
        if s.cwnd < s.ssthresh:
            if backlog > _GAMMA:
                s.cwnd = min(s.cwnd, target + 1)
                s.ssthresh = min(s.ssthresh, s.cwnd)
            else:
                slow_start(s, acked)
        else:
            if backlog >= s.wv_alpha:
                s.wv_rate = s.cwnd / (rtt / 1e9)
                _share(subs, c, s)
            if backlog > s.wv_alpha:
                s.cwnd -= 1
            elif backlog < s.wv_alpha:
                s.cwnd += 1
            # Drain the queue when it has grown to twice the smallest seen.
            queue = rtt - s.wv_base
            s.wv_queue = min(s.wv_queue, queue)
            if queue >= 2 * s.wv_queue and backlog > s.wv_alpha:
                s.cwnd = max(2, s.cwnd - int(s.cwnd * queue // (2 * rtt)))
                s.wv_queue = FAR
            s.ssthresh = min(s.ssthresh, max(2, s.cwnd - 1))
        s.cwnd = max(s.cwnd, 2)
    s.wv_sum = 0
    s.wv_count = 0


@compiled
def _share(subs: Any, c: Any, s: Any) -> None:
    total = 0.0
    for k in range(c.sub0, c.sub0 + c.sub_n):
        total += subs[k].wv_rate
    if total > 0.0:
        s.wv_weight = s.wv_rate / total
    s.wv_alpha = max(2.0, _TOTAL_ALPHA * s.wv_weight)
