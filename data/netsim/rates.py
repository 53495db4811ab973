"""A link's rate and delay, constant or a series, say when a packet leaves it and arrives."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.state import FAR

STEPS, OPPORTUNITIES = 1, 2
OPPORTUNITY_BYTES = 1500
"""Bytes one delivery opportunity of a mahimahi trace carries."""

_BIT_NS = 8_000_000_000


@compiled
def finish_time(S: Any, L: Any, start: int, size: int) -> int:
    """When a packet whose service may begin at ``start`` has left the link (ns).

    A series with a period begins again at its end; one without holds its last value.
    """
    if L.rate_mode == 0:
        if L.rate == 0:
            return start
        return int(start + (size * _BIT_NS + L.rate - 1) // L.rate)
    if L.rate_mode == OPPORTUNITIES:
        return _opportunity(S, L, start, size)
    need = size * _BIT_NS
    t = start
    while True:
        end = _step_end(S, L, t)
        rate = S.series_v[L.rate_off + L.rate_i]
        if rate > 0:
            span = (need + rate - 1) // rate
            if t + span <= end:
                return int(t + span)
            # No overflow: rate * (end - t) < need here.
            need -= rate * (end - t)
        if end >= FAR:
            return FAR
        t = end


@compiled
def _step_end(S: Any, L: Any, t: int) -> int:
    """Move the cursor to the step in force at ``t``; when that step ends."""
    while True:
        i = L.rate_i
        if i + 1 < L.rate_n:
            end = L.rate_base + S.series_t[L.rate_off + i + 1]
        elif L.rate_period > 0:
            end = L.rate_base + L.rate_period
        else:
            return FAR
        if t < end:
            return int(end)
        if i + 1 < L.rate_n:
            L.rate_i = i + 1
        else:
            L.rate_i = 0
            L.rate_base += L.rate_period


@compiled
def _opportunity(S: Any, L: Any, start: int, size: int) -> int:
    if L.opportunity_t < start:
        L.opportunity_left = 0
    need = size
    while need > L.opportunity_left:
        need -= L.opportunity_left
        while True:
            if L.rate_i == L.rate_n:
                L.rate_i = 0
                L.rate_base += L.rate_period
            t = L.rate_base + S.series_t[L.rate_off + L.rate_i]
            L.rate_i += 1
            if t >= start:
                break
        L.opportunity_t = t
        L.opportunity_left = OPPORTUNITY_BYTES
    L.opportunity_left -= need
    return int(L.opportunity_t)


@compiled
def delay_at(S: Any, L: Any, t: int) -> int:
    """Propagation delay in force at ``t`` (ns); ``t`` never goes back."""
    if L.delay_n == 0:
        return int(L.delay)
    while True:
        i = L.delay_i
        if i + 1 < L.delay_n:
            if t < L.delay_base + S.series_t[L.delay_off + i + 1]:
                break
            L.delay_i = i + 1
        elif L.delay_period > 0 and t >= L.delay_base + L.delay_period:
            L.delay_i = 0
            L.delay_base += L.delay_period
        else:
            break
    return int(S.series_v[L.delay_off + L.delay_i])
