"""A scheduler chooses the next data and its subflow: minRTT (tcco.txt eqs. 1-2) and others."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled
from data.netsim.pacing import paced_out
from data.netsim.qos_scheduler import assign, first_ready, in_order
from data.netsim.recovery import in_flight
from data.netsim.rings import longer_ring
from data.netsim.state import FAR, LOSS, QOS, REDUNDANT, ROUND_ROBIN


@compiled
def choose(S: Any, c: Any) -> int:
    """Subflow for the next new segment, or -1.

    minRTT gives each segment to the subflow of smallest RTT whose window has room and which isn't
    in the Loss state; a subflow is skipped once it is paced out.
    """
    best = -1
    best_rtt = FAR
    if c.scheduler == QOS and c.sub_n > 1:
        return _by_score(S, c)
    for k in range(c.sub_n):
        si = c.sub0 + (k + c.next_sub) % c.sub_n
        s = S.sub[si]
        if (
            s.established == 0
            or (c.sub_n > 1 and (s.ca_state == LOSS or (s.stale != 0 and _any_fresh(S, c))))
            or in_flight(s) >= s.cwnd
            or s.to_retx > 0
            or ring_full(S, s)
            or not has_data(S, c, s)
        ):
            continue
        if s.srtt < best_rtt and not paced_out(S, si, s):
            best = si
            best_rtt = s.srtt
            if c.scheduler != 0 or c.sub_n == 1:
                break
    if c.scheduler == ROUND_ROBIN and best >= 0:
        c.next_sub = (best - c.sub0 + 1) % c.sub_n
    return best


@compiled
def _by_score(S: Any, c: Any) -> int:
    """Subflow with data of its own to send; if none has any, the best one gets some."""
    for _ in range(2):
        best = -1
        for si in range(c.sub0, c.sub0 + c.sub_n):
            s = S.sub[si]
            if (
                first_ready(S, c, s, best)
                and in_flight(s) < s.cwnd
                and not ring_full(S, s)
                and not (s.stale != 0 and _any_fresh(S, c))
                and not paced_out(S, si, s)
            ):
                best = si
        if best >= 0 or not assign(S, c):
            return best
    return -1


@compiled
def ring_full(S: Any, s: Any) -> bool:
    """Whether the ring has no place for a new segment and may not be longer."""
    if s.snd_nxt - s.snd_una <= s.mask:
        return False
    if s.mask == s.mask_max:
        return True
    longer_ring(S, s)
    return False


@compiled
def _any_fresh(S: Any, c: Any) -> bool:
    for si in range(c.sub0, c.sub0 + c.sub_n):
        if S.sub[si].established != 0 and S.sub[si].stale == 0:
            return True
    return False


@compiled
def has_data(S: Any, c: Any, s: Any) -> bool:
    """Whether the connection has a segment to send over a subflow, within the peer's window."""
    if c.scheduler == REDUNDANT:
        limit = min(c.data_end, c.edge)
        return bool(max(s.redundant_nxt, c.data_una) < limit)
    if c.inject_head < c.inject_tail or s.queue_from < s.queue_to:
        return True
    return bool(c.data_nxt < c.data_end and c.data_nxt < c.edge)


@compiled
def next_data(S: Any, c: Any, s: Any) -> int:
    """Data-level number of the next segment for a subflow, or -1 when there is none."""
    if c.scheduler == REDUNDANT:
        data = max(s.redundant_nxt, c.data_una)
        if data >= min(c.data_end, c.edge):
            return -1
        s.redundant_nxt = data + 1
        c.data_nxt = max(c.data_nxt, data + 1)
        return int(data)
    while c.inject_head < c.inject_tail:
        data = S.inject[c.inject_off + (c.inject_head & c.inject_mask)]
        c.inject_head += 1
        if data >= c.data_una:
            return int(data)
    if s.queue_from < s.queue_to:
        s.queue_from += 1
        return int(s.queue_from - 1)
    if c.data_nxt < c.data_end and c.data_nxt < c.edge:
        c.data_nxt += 1
        return int(c.data_nxt - 1)
    return -1


@compiled
def hand_over(S: Any, c: Any, s: Any) -> None:
    """Queue a silent subflow's unacknowledged data for the other subflows."""
    for n in range(s.snd_una, s.snd_nxt):
        X = S.tx[s.ring + (n & s.mask)]
        if X.dsn >= c.data_una and c.inject_tail - c.inject_head <= c.inject_mask:
            S.inject[c.inject_off + (c.inject_tail & c.inject_mask)] = X.dsn
            c.inject_tail += 1
    while s.queue_from < s.queue_to and c.inject_tail - c.inject_head <= c.inject_mask:
        S.inject[c.inject_off + (c.inject_tail & c.inject_mask)] = s.queue_from
        c.inject_tail += 1
        s.queue_from += 1
    if c.scheduler == QOS:
        in_order(S, c)
