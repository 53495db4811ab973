"""HighSpeed TCP: RFC 3649 (its formulas in place of the table of Linux' tcp_highspeed.c)."""

from __future__ import annotations

import math
from typing import Any

from data.netsim.cc.reno import grow, limited, slow_start
from data.netsim.jit import compiled

SUMMARY = "HighSpeed TCP: faster growth and smaller decrease for large windows (RFC 3649)"
_LOW, _HIGH, _HIGH_DECREASE = 38.0, 83000.0, 0.1


@compiled
def _decrease(window: float) -> float:
    if window <= _LOW:
        return 0.5
    return float((_HIGH_DECREASE - 0.5) * math.log(window / _LOW) / math.log(_HIGH / _LOW) + 0.5)


@compiled
def _increase(window: float) -> float:
    if window <= _LOW:
        return 1.0
    b = _decrease(window)
    return float(max(1.0, window * window * 0.078 / window**1.2 * 2.0 * b / (2.0 - b)))


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Grow by a(w) per RTT."""
    if not limited(s):
        return
    if s.cwnd < s.ssthresh:
        slow_start(s, acked)
        return
    grow(s, acked * _increase(float(s.cwnd)) / s.cwnd)


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """The window less its share b(w)."""
    return int(max(2, int(s.cwnd * (1.0 - _decrease(float(s.cwnd))))))
