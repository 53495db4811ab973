"""MP-CDG: delay gradients per subflow, coupled increases (mp-cdg.txt sections 5 and 6).

The paper gives no algorithm, only what it does: a loss counts when the path's load is at its
capacity, and a round-trip time that keeps rising leads to a back-off by chance. What we made of
it stands in docs/deviations.md.
"""

from __future__ import annotations

from typing import Any

from data.netsim.cc import cdg, lia
from data.netsim.cc.reno import limited
from data.netsim.jit import compiled
from data.netsim.state import FAR

SUMMARY = "MP-CDG: LIA's increases, CDG's back-offs; only losses of a full path count"
FIELDS = {"mc_low": "i8"}
_AT_CAPACITY = 1.07
"""Load over capacity from which on a path is full; below, a loss has another cause."""
_HELD = 1.5
"""Load over capacity from which on a queue is held by others: backing off wouldn't empty it."""
_BETA = 0.7071

# What is measured of each round is CDG's, in CDG's fields.
start = cdg.start
acked = cdg.acked


@compiled
def _load(s: Any) -> float:
    """Window over what the path holds without a queue.

    A path that delivers a window per RTT has a capacity of window / RTT x base RTT, so this is
    RTT over base RTT; the smallest RTT of the last round, which is that of a queue that stood.
    """
    return float(s.mc_low / s.min_rtt)


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Once a round a chance to back off from a queue of our own making; else LIA's growth."""
    if s.snd_una > s.cg_end and s.cg_min < FAR:
        gradient = cdg.gradient_ms(s) if s.cg_old_min >= 0 else 0.0
        s.mc_low = s.cg_min
        s.cg_old_min = s.cg_min
        s.cg_old_max = s.cg_max
        s.cg_min = FAR
        s.cg_max = 0
        s.cg_end = s.snd_nxt
        ours = _AT_CAPACITY < _load(s) < _HELD
        if gradient > 0.0 and ours and cdg.backs_off(s, gradient):
            s.cg_shadow = max(s.cg_shadow, s.cwnd)
            s.cwnd = max(2, int(s.cwnd * _BETA))
            s.ssthresh = s.cwnd
            return
    if not limited(s):
        s.cg_shadow = min(s.cg_shadow, s.cwnd)
        return
    before = s.cwnd
    lia.avoid(subs, c, s, acked, now)
    s.cg_shadow += s.cwnd - before


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Half of the window that delays hadn't made smaller, but only if the path was full."""
    if _load(s) < _AT_CAPACITY:
        return int(max(2, s.cwnd))
    s.cg_shadow = max(s.cwnd, s.cg_shadow) >> 1
    return int(max(2, min(s.cg_shadow, s.cwnd)))
