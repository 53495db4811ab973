"""MP-CDG's scheduler: a path's score, its own queue, its loss rate (mp-cdg.txt section 4.1).

Data lie in two levels of queues: what nobody has been given yet, and what one subflow has been
given and not yet sent. The subflow of the best score is given the next segment, unless another one
would deliver all that waits sooner than this one its segment, by equation 2: then it waits. What a
dead subflow had goes back, in the order of the data (Fig. 5).
"""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.state import LOSS

_SHORTEST, _LONGEST = 2, 200
"""Bounds of an observation period, in smoothed RTTs; by equation 4 alone it may reach 0 (ours)."""
_FIRST = 20


@compiled
def usable(s: Any) -> bool:
    """Whether a subflow can be given data."""
    return bool(s.established != 0 and s.ca_state != LOSS and s.srtt > 0)


@compiled
def in_flight(s: Any) -> int:
    """Segments believed to be in the network (`data.netsim.recovery` imports the scheduler)."""
    return int(s.snd_nxt - s.snd_una - s.sacked_out - s.lost_out + s.retrans_out)


@compiled
def first_ready(S: Any, c: Any, s: Any, best: int) -> bool:
    """Whether a subflow has something to send, and of earlier data than the best one so far."""
    if s.established == 0 or s.ca_state == LOSS or s.to_retx > 0:
        return False
    if c.inject_head < c.inject_tail:
        return bool(best < 0 or s.srtt < S.sub[best].srtt)
    if s.queue_from >= s.queue_to:
        return False
    return bool(best < 0 or s.queue_from < S.sub[best].queue_from)


@compiled
def observe(s: Any, now: int) -> None:
    """Loss rate over a period that jitter stretches: equations 3 and 4."""
    if s.period == 0:
        s.period = _FIRST * s.srtt
        _begin(s, now)
        return
    s.rtt_low = min(s.rtt_low, s.last_rtt)
    s.rtt_high = max(s.rtt_high, s.last_rtt)
    if now - s.period_begin < s.period:
        return
    sent = s.sent - s.period_sent
    if sent > 0:
        s.loss_seen = min(1.0, (s.lost - s.period_lost) / sent)
    count = s.rtt_n - s.period_rtt_n
    if count > 0 and s.rtt_high > s.rtt_low:
        mean = (s.rtt_sum - s.period_rtt_sum) / count
        jitter = (s.last_rtt - mean) / (s.rtt_high - s.rtt_low)
        longer = int(s.period * (1.0 + jitter))
        s.period = max(_SHORTEST * s.srtt, min(_LONGEST * s.srtt, longer))
    _begin(s, now)


@compiled
def _begin(s: Any, now: int) -> None:
    s.period_begin = now
    s.period_sent = s.sent
    s.period_lost = s.lost
    s.period_rtt_sum = s.rtt_sum
    s.period_rtt_n = s.rtt_n
    s.rtt_low = s.last_rtt
    s.rtt_high = s.last_rtt


@compiled
def delay(s: Any, queued: int) -> float:
    """Time (ns) until a segment has arrived before which others wait: equation 2."""
    lost = s.loss_seen
    timeout = lost * s.rto
    waiting = (queued // s.cwnd) * (timeout + (1.0 - lost) * s.srtt)
    return float(waiting + timeout + (1.0 - lost) * s.srtt / 2.0)


@compiled
def score(s: Any) -> float:
    """Equation 1: the free share of the window over the delay expected by equation 2."""
    free = s.cwnd - in_flight(s)
    if free <= 0:
        return 0.0
    return float(free / s.cwnd / delay(s, 0))


@compiled
def assign(S: Any, c: Any) -> bool:
    """Give the best subflow a segment that nobody has; whether it got one."""
    limit = min(c.data_end, c.edge)
    if c.data_nxt >= limit:
        return False
    best = -1
    highest = 0.0
    for si in range(c.sub0, c.sub0 + c.sub_n):
        s = S.sub[si]
        if not usable(s) or s.stale != 0 or s.queue_from < s.queue_to:
            continue
        observe(s, S.g.now)
        value = score(s)
        if value > highest:
            best = si
            highest = value
    if best < 0:
        return False
    s = S.sub[best]
    if _sooner(S, c, best, limit - c.data_nxt):
        return False
    s.queue_from = c.data_nxt
    c.data_nxt += 1
    s.queue_to = c.data_nxt
    return True


@compiled
def _sooner(S: Any, c: Any, best: int, waiting: int) -> bool:
    """Whether another subflow delivers all that waits before the best one delivers a segment.

    It has segments under way then, or else the better score: so an ACK comes or a timer ends, and
    what waits is looked at again.
    """
    own = delay(S.sub[best], 0)
    for si in range(c.sub0, c.sub0 + c.sub_n):
        o = S.sub[si]
        if si == best or not usable(o) or o.stale != 0:
            continue
        ahead = waiting + in_flight(o) + o.queue_to - o.queue_from
        if delay(o, ahead) < own:
            return True
    return False


@compiled
def in_order(S: Any, c: Any) -> None:
    """Sort what waits for other subflows by its place in the data."""
    for i in range(c.inject_head + 1, c.inject_tail):
        value = S.inject[c.inject_off + (i & c.inject_mask)]
        j = i - 1
        while j >= c.inject_head and S.inject[c.inject_off + (j & c.inject_mask)] > value:
            S.inject[c.inject_off + ((j + 1) & c.inject_mask)] = S.inject[
                c.inject_off + (j & c.inject_mask)
            ]
            j -= 1
        S.inject[c.inject_off + ((j + 1) & c.inject_mask)] = value
