"""Reno with appropriate byte counting: RFC 5681, RFC 3465; Linux' tcp_cong.c."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled

SUMMARY = "Reno/NewReno with SACK: one segment per RTT, half on loss (RFC 5681, 6582)"


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Do nothing: there is nothing to prepare."""


@compiled
def restart(s: Any, now: int) -> None:
    """Do nothing: pauses make no difference."""


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Half the window."""
    return int(max(s.cwnd >> 1, 2))


@compiled
def limited(s: Any) -> bool:
    """Whether the window was what held the sender back (tcp_is_cwnd_limited)."""
    if s.cwnd_limited != 0:
        return True
    return bool(s.cwnd < s.ssthresh and s.cwnd < 2 * s.max_out)


@compiled
def slow_start(s: Any, acked: int) -> int:
    """Grow by what was acknowledged, up to the threshold; what is left of ``acked``."""
    grown = min(s.cwnd + acked, s.ssthresh)
    acked -= grown - s.cwnd
    s.cwnd = grown
    return int(acked)


@compiled
def past_slow_start(s: Any, acked: int) -> int:
    """What is left of ``acked`` for congestion avoidance: none unless the window is the limit."""
    if not limited(s):
        return 0
    if s.cwnd < s.ssthresh:
        return slow_start(s, acked)
    return acked


@compiled
def grow(s: Any, amount: float) -> None:
    """Change the window by a real number of segments; a fraction waits for its whole."""
    s.growth += amount
    steps = int(s.growth)
    s.growth -= steps
    s.cwnd = max(1, s.cwnd + steps)


@compiled
def additive(s: Any, per_segment: int, acked: int) -> None:
    """Grow by one segment for every ``per_segment`` acknowledged (tcp_cong_avoid_ai)."""
    if s.cwnd_cnt >= per_segment:
        s.cwnd_cnt = 0
        s.cwnd += 1
    s.cwnd_cnt += acked
    if s.cwnd_cnt >= per_segment:
        steps = s.cwnd_cnt // per_segment
        s.cwnd_cnt -= steps * per_segment
        s.cwnd += steps


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Slow start below the threshold, then one segment per window."""
    acked = past_slow_start(s, acked)
    if acked == 0:
        return
    additive(s, s.cwnd, acked)


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Do nothing: RTT samples aren't needed."""


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """Do nothing: states make no difference."""


@compiled
def control(subs: Any, c: Any, s: Any, acked: int, flight: int, now: int) -> bool:
    """Leave the window to ``avoid`` and to the rate reduction."""
    return False


@compiled
def receive(s: Any, sent: int, now: int) -> None:
    """Do nothing at the receiver."""
