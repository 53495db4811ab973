"""Active queue management: what happens to a packet at a queue's door or at its head.

RED: Floyd and Jacobson 1993, with the "gentle" ramp. PIE: RFC 8033. CoDel: RFC 8289.
A packet's fate is 0 (pass), 1 (mark) or 2 (drop).
"""

from __future__ import annotations

import math
from typing import Any

from data.netsim.jit import compiled
from data.netsim.rng import uniform
from data.netsim.state import AGENT_DROP, PIE, RED

PASS, MARK, DROP = 0, 1, 2

_PIE_UPDATE = 15_000_000
_PIE_BURST = 150_000_000
_MTU = 1500


@compiled
def at_door(S: Any, L: Any, li: int, size: int, now: int) -> int:
    """Fate of an arriving packet under the disciplines that decide at arrival."""
    if L.queue == RED:
        return red(S.rng, L, li, now)
    if L.queue == PIE:
        return pie(S.rng, L, li, size, now)
    if L.queue == AGENT_DROP and L.agent_p > 0.0 and uniform(S.rng, li) < L.agent_p:
        return DROP
    return PASS


@compiled
def red(rng: Any, L: Any, li: int, now: int) -> int:
    """RED on the average queue in packets; drops are spread evenly by counting."""
    if L.q_packets == 0 and L.free_at <= now and L.rate > 0:
        # The average decays as if small packets had left during the idle time.
        idle = (now - L.free_at) * L.rate / (8e9 * _MTU)
        L.avg = L.avg * math.pow(1.0 - L.weight, idle)
    else:
        L.avg = L.avg + L.weight * (L.q_packets - L.avg)
    if L.avg < L.min_th:
        L.red_count = -1
        return PASS
    if L.avg >= L.max_th:
        if L.gentle == 0 or L.avg >= 2.0 * L.max_th:
            L.red_count = 0
            return DROP
        p = L.max_p + (1.0 - L.max_p) * (L.avg - L.max_th) / L.max_th
    else:
        p = L.max_p * (L.avg - L.min_th) / (L.max_th - L.min_th)
    L.red_count += 1
    if L.red_count * p < 1.0:
        p = p / (1.0 - L.red_count * p)
    else:
        p = 1.0
    if uniform(rng, li) < p:
        L.red_count = 0
        return MARK
    return PASS


@compiled
def pie(rng: Any, L: Any, li: int, size: int, now: int) -> int:
    """PIE; the delay is that of the work in the queue; updates that are due are done first."""
    while L.next_update <= now:
        _pie_update(L, max(0, L.free_at - L.next_update))
        L.next_update += _PIE_UPDATE
    if L.burst_left > 0:
        return PASS
    if (L.old_delay < L.target // 2 and L.drop_p < 0.2) or L.q_bytes <= 2 * _MTU:
        return PASS
    if uniform(rng, li) < L.drop_p * size / _MTU:
        return MARK if L.drop_p < 0.1 else DROP
    return PASS


@compiled
def _pie_update(L: Any, delay: int) -> None:
    step = 0.125 * (delay - L.target) / 1e9 + 1.25 * (delay - L.old_delay) / 1e9
    p = L.drop_p
    bound = 1e-6
    scale = 2048.0
    while bound < 0.1 and p >= bound:
        bound *= 10.0
        scale /= 4.0
    # RFC 8033 section 5.1: 1/2048 below 1e-6, then 1/512, 1/128, 1/32, 1/8, 1/2, 1.
    if p >= 0.1:
        scale = 1.0
    step /= scale
    if p >= 0.1 and step > 0.02:
        step = 0.02
    p += step
    if delay == 0 and L.old_delay == 0:
        p *= 0.98
    L.drop_p = min(1.0, max(0.0, p))
    if L.burst_left > 0:
        L.burst_left = max(0, L.burst_left - _PIE_UPDATE)
    if L.drop_p == 0.0 and delay < L.target // 2 and L.old_delay < L.target // 2:
        L.burst_left = _PIE_BURST
    L.old_delay = delay


@compiled
def codel_drops(L: Any, wait: int, now: int) -> bool:
    """Whether CoDel drops (or marks) the packet at the head, which has waited ``wait`` ns.

    Called once per packet taken from the queue; ``L.q_bytes`` no longer counts it.
    """
    ok_to_drop = False
    if wait < L.target or L.q_bytes <= _MTU:
        L.cd_first = 0
    elif L.cd_first == 0:
        L.cd_first = now + L.interval
    elif now >= L.cd_first:
        ok_to_drop = True
    if L.cd_dropping != 0:
        if not ok_to_drop:
            L.cd_dropping = 0
            return False
        if now >= L.cd_next:
            L.cd_count += 1
            L.cd_next += int(L.interval / math.sqrt(L.cd_count))
            return True
        return False
    if ok_to_drop:
        L.cd_dropping = 1
        fresh = L.cd_count - L.cd_last
        if fresh > 1 and now - L.cd_next < 16 * L.interval:
            L.cd_count = fresh
        else:
            L.cd_count = 1
        L.cd_next = now + int(L.interval / math.sqrt(L.cd_count))
        L.cd_last = L.cd_count
        return True
    return False
