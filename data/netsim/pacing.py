"""Pacing: the rate, the debt after a burst, the timer."""

from __future__ import annotations

from typing import Any

from data.netsim.heap import push
from data.netsim.jit import compiled
from data.netsim.state import EV_PACE

_UNPACED = 10
"""The first segments of a connection are sent at once."""


@compiled
def set_pacing(s: Any) -> None:
    """The kernel's pacing rate: twice the window per RTT in slow start, 1.2 times after."""
    if s.pacing == 1 and s.srtt > 0:
        ratio = 2.0 if s.cwnd < s.ssthresh // 2 else 1.2
        s.pacing_rate = (
            ratio * max(s.cwnd, s.snd_nxt - s.snd_una) * 1e9 / s.srtt * s.wire * s.mss / s.payload
        )
        # The kernel sends about a millisecond's worth at once, at least two segments.
        s.pace_burst = min(44, max(2, int(s.pacing_rate / 1024.0 / s.wire)))


@compiled
def paced_out(S: Any, si: int, s: Any) -> bool:
    """Whether pacing forbids sending now; arms the timer for when it allows it again."""
    if s.pacing == 0 or s.pace_next <= S.g.now:
        return False
    s.pace_at = s.pace_next
    if s.pace_at < s.pace_ev:
        s.pace_ev = s.pace_at
        push(S.g, S.heap, s.pace_at, EV_PACE, si)
    return True


@compiled
def spend_pace(S: Any, s: Any, segments: int) -> None:
    """Put off the next transmission by the time that ``segments`` take at the pacing rate."""
    if s.pacing == 0 or s.pacing_rate <= 0.0 or s.sent < _UNPACED:
        return
    now = S.g.now
    span = int(segments * s.wire * 1e9 / s.pacing_rate)
    # A segment sent late makes the next gap shorter, down to half (tcp_update_skb_after_send).
    s.pace_next = max(s.pace_next, now) + span - min(span // 2, max(0, now - s.pace_next))
