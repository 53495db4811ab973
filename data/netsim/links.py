"""A link loses, queues, serves and delays packets, by one event per packet and link.

A first-in-first-out queue whose drops are decided at arrival needs no event of its own: the
moment a packet leaves is known when it arrives, and how many packets wait is known from the
moments at which their service starts. CoDel decides at the head, so its links have a second
event, when the server is free.
"""

from __future__ import annotations

from typing import Any

from data.netsim.aqm import DROP, MARK, PASS, at_door, codel_drops
from data.netsim.heap import give_packet, pop, push, push_at, replace_first
from data.netsim.jit import compiled
from data.netsim.rates import OPPORTUNITIES, delay_at, finish_time
from data.netsim.rng import uniform, weibull
from data.netsim.state import BERNOULLI, CODEL, EV_FREE, EV_LINK, EV_PACKET, FAR


@compiled
def enqueue(S: Any, li: int, p: int) -> None:
    """A packet arrives at a link."""
    now = S.g.now
    L = S.link[li]
    P = S.pkt[p]
    L.arrived += 1
    if L.loss_model != 0 and L.loss_exit == 0 and _is_lost(S.rng, L, li):
        L.lost += 1
        give_packet(S.g, S.pkt, p)
        return
    settle(S, L, now)
    if L.q_packets >= L.limit_packets or L.q_bytes + P.wire > L.limit_bytes:
        L.dropped += 1
        give_packet(S.g, S.pkt, p)
        return
    fate = PASS
    if L.queue != 0 and L.queue != CODEL:
        fate = at_door(S, L, li, P.wire, now)
        if fate == MARK and (L.ecn == 0 or P.ce < 0):
            fate = DROP
    if fate == DROP:
        L.dropped += 1
        give_packet(S.g, S.pkt, p)
        return
    if P.ce == 0 and (fate == MARK or L.q_packets >= L.mark_packets):
        P.ce = 1
        L.marked += 1
    P.next = -1
    if L.queue == CODEL:
        P.start = now
        if L.busy != 0:
            _append_waiting(S, L, p)
        else:
            _serve(S, L, li, p, now)
        return
    start = max(now, L.free_at)
    depart = finish_time(S, L, start, P.wire)
    L.free_at = depart
    if L.rate_mode == OPPORTUNITIES:
        # A packet waits until the opportunity that takes it.
        start = depart
    P.start = start
    L.wait_sum += start - now
    L.wait_max = max(L.wait_max, start - now)
    L.served += 1
    _launch(S, L, li, p, depart)
    if start > now:
        L.q_packets += 1
        L.q_bytes += P.wire
        if L.qhead < 0:
            L.qhead = p


@compiled
def settle(S: Any, L: Any, now: int) -> None:
    """Take out of the queue what is in service or gone by now."""
    while L.qhead >= 0 and S.pkt[L.qhead].start <= now:
        L.q_packets -= 1
        L.q_bytes -= S.pkt[L.qhead].wire
        L.qhead = S.pkt[L.qhead].next


@compiled
def _is_lost(rng: Any, L: Any, li: int) -> bool:
    if L.loss_model == BERNOULLI:
        return bool(uniform(rng, li) < L.loss_good)
    # Gilbert-Elliott: the state moves with every packet, then the packet is lost or not.
    if L.bad != 0:
        if uniform(rng, li) < L.to_good:
            L.bad = 0
    elif uniform(rng, li) < L.to_bad:
        L.bad = 1
    return bool(uniform(rng, li) < (L.loss_bad if L.bad != 0 else L.loss_good))


@compiled
def _launch(S: Any, L: Any, li: int, p: int, depart: int) -> None:
    """Put a packet on the wire: it will be at the other end after the delay."""
    P = S.pkt[p]
    t = depart
    if depart < FAR:
        t += delay_at(S, L, depart)
        if L.jitter > 0 and L.reorder == 0:
            t += int(uniform(S.rng, li) * L.jitter)
        if L.late > 0.0:
            t += int(weibull(S.rng, li, L.late, L.late_power))
    if t < L.last_t:
        t = L.last_t
    L.last_t = t
    S.g.seq += 1
    P.t = t
    P.seq = S.g.seq
    L.flight += 1
    if L.tail >= 0:
        S.pkt[L.tail].next = p
    else:
        L.head = p
        push_at(S.g, S.heap, t, P.seq, EV_LINK, li)
    L.tail = p


@compiled
def deliver(S: Any, li: int) -> int:
    """The packet at the head of a link's wire reaches its end; its event, the first, goes.

    On a busy link the next packet's event takes its place, often as the first again.

    Returns
    -------
    int
        The packet, or -1 when it goes no further (lost at the end, or held back by jitter).
    """
    L = S.link[li]
    p = L.head
    P = S.pkt[p]
    if p == L.qhead:
        L.q_packets -= 1
        L.q_bytes -= P.wire
        L.qhead = P.next
    L.head = P.next
    L.flight -= 1
    if L.head >= 0:
        H = S.pkt[L.head]
        replace_first(S.g, S.heap, H.t, H.seq, EV_LINK, li)
    else:
        L.tail = -1
        pop(S.g, S.heap)
    if L.loss_exit != 0 and _is_lost(S.rng, L, li):
        L.lost += 1
        give_packet(S.g, S.pkt, p)
        return -1
    L.delivered += 1
    L.bytes_out += P.wire
    if L.reorder != 0 and L.jitter > 0:
        push(S.g, S.heap, S.g.now + int(uniform(S.rng, li) * L.jitter), EV_PACKET, p)
        return -1
    return int(p)


@compiled
def _append_waiting(S: Any, L: Any, p: int) -> None:
    if L.wait_tail >= 0:
        S.pkt[L.wait_tail].next = p
    else:
        L.wait_head = p
    L.wait_tail = p
    L.q_packets += 1
    L.q_bytes += S.pkt[p].wire


@compiled
def _serve(S: Any, L: Any, li: int, p: int, now: int) -> None:
    P = S.pkt[p]
    P.next = -1
    wait = now - P.start
    depart = finish_time(S, L, now, P.wire)
    L.wait_sum += wait
    L.wait_max = max(L.wait_max, wait)
    L.served += 1
    L.busy = 1
    L.free_at = depart
    _launch(S, L, li, p, depart)
    push(S.g, S.heap, depart, EV_FREE, li)


@compiled
def server_free(S: Any, li: int) -> None:
    """A CoDel link has sent a packet: take the next one that CoDel lets pass."""
    L = S.link[li]
    now = S.g.now
    L.busy = 0
    while L.wait_head >= 0:
        p = L.wait_head
        P = S.pkt[p]
        L.wait_head = P.next
        if L.wait_head < 0:
            L.wait_tail = -1
        L.q_packets -= 1
        L.q_bytes -= P.wire
        if codel_drops(L, now - P.start, now):
            if L.ecn == 0 or P.ce < 0:
                L.dropped += 1
                give_packet(S.g, S.pkt, p)
                continue
            if P.ce == 0:
                P.ce = 1
                L.marked += 1
        _serve(S, L, li, p, now)
        return
    L.cd_dropping = 0
    L.cd_first = 0
