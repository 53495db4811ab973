"""CDG: Hayes and Armitage 2011; after Linux' tcp_cdg.c, without its HyStart."""

from __future__ import annotations

import math
from typing import Any

from data.netsim.cc import reno
from data.netsim.cc.reno import limited
from data.netsim.jit import compiled
from data.netsim.state import FAR

SUMMARY = "CDG: backs off by chance on delay gradients, tolerates other losses (tcp_cdg.c)"
FIELDS = {
    "cg_end": "i8", "cg_min": "i8", "cg_max": "i8", "cg_old_min": "i8", "cg_old_max": "i8",
    "cg_smooth_min": "f8", "cg_smooth_max": "f8", "cg_shadow": "i8", "cg_backoffs": "i8",
    "cg_full": "i8",
}  # fmt: skip
_G_MS = 3.0
_BETA = 0.7071
_INEFFECTIVE, _HOLD = 5, 5


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Begin to measure."""
    s.cg_min = FAR
    s.cg_old_min = -1
    s.cg_end = s.snd_nxt
    s.cg_shadow = s.cwnd
    s.cg_full = -1


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Smallest and largest RTT of this round."""
    if rtt >= 0:
        s.cg_min = min(s.cg_min, rtt)
        s.cg_max = max(s.cg_max, rtt)


@compiled
def gradient_ms(s: Any) -> float:
    """Smoothed rise per round (ms) of the smallest or the largest RTT; notes the queue's state."""
    s.cg_smooth_min += ((s.cg_min - s.cg_old_min) / 1e6 - s.cg_smooth_min) / 8.0
    s.cg_smooth_max += ((s.cg_max - s.cg_old_max) / 1e6 - s.cg_smooth_max) / 8.0
    if s.cg_smooth_min > 0.0 and s.cg_smooth_max <= 0.0:
        s.cg_full = 1
    elif s.cg_smooth_min > 0.0 or s.cg_smooth_max < 0.0:
        s.cg_full = 0
    return float(max(s.cg_smooth_min, s.cg_smooth_max))


@compiled
def backs_off(s: Any, gradient: float) -> bool:
    """Whether chance has it, and backing off has helped of late."""
    s.random = (1103515245 * s.random + 12345) % 2147483648
    if s.random / 2147483648.0 <= math.exp(-gradient / _G_MS):
        return False
    s.cg_backoffs += 1
    if s.cg_backoffs > _INEFFECTIVE:
        # Backing off does not help: something else fills the queue. Leave off for a while.
        if s.cg_backoffs >= _INEFFECTIVE + _HOLD:
            s.cg_backoffs = 0
        return False
    return True


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Once a round a chance to back off; else Reno's growth."""
    if s.snd_una > s.cg_end and s.cg_min < FAR:
        gradient = gradient_ms(s) if s.cg_old_min >= 0 else 0.0
        s.cg_old_min = s.cg_min
        s.cg_old_max = s.cg_max
        s.cg_min = FAR
        s.cg_max = 0
        s.cg_end = s.snd_nxt
        if gradient > 0.0 and backs_off(s, gradient):
            s.cg_shadow = max(s.cg_shadow, s.cwnd)
            s.cwnd = max(2, int(s.cwnd * _BETA))
            s.ssthresh = s.cwnd
            return
    if not limited(s):
        s.cg_shadow = min(s.cg_shadow, s.cwnd)
        return
    before = s.cwnd
    reno.avoid(subs, c, s, acked, now)
    s.cg_shadow += s.cwnd - before


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """No decrease for a loss while the queue isn't full; else from the shadow window."""
    if s.cg_full == 0:
        return int(max(2, s.cwnd))
    s.cg_shadow = min(s.cg_shadow >> 1, s.cwnd)
    return int(max(2, s.cg_shadow, int(s.cwnd * _BETA)))
