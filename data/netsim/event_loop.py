"""The compiled event loop takes events in the order of time, up to a given time."""

from __future__ import annotations

from typing import Any

from data.netsim.acks import on_ack
from data.netsim.handshake import on_synack, send_syn
from data.netsim.heap import give_packet, pop, push
from data.netsim.jit import compiled, entry
from data.netsim.links import deliver, enqueue, server_free, settle
from data.netsim.receiver import on_data, on_delack
from data.netsim.reference import reference
from data.netsim.rng import exponential
from data.netsim.sender import push_data
from data.netsim.state import (
    ACK,
    BURST,
    DATA,
    DONE,
    EV_APP,
    EV_DELACK,
    EV_FREE,
    EV_LINK,
    EV_PACE,
    EV_PACKET,
    EV_REO,
    EV_RTO,
    EV_SOURCE,
    EV_START,
    EV_STOP,
    NEED_HEAP,
    NEED_LOG,
    NEED_PACKETS,
    NEED_RING,
    SYN,
    SYNACK,
    UDP,
)
from data.netsim.timers import on_pace, on_reo, on_rto

RESERVE = 16 * BURST
"""Packets that must be free before an event: no event takes more."""


@entry
def advance(address: Any, until: int) -> int:
    """Process all events up to and including a time.

    Parameters
    ----------
    address : int
        Where the simulation lies (`data.netsim.reference.pinned`); it is changed in place.
    until : int
        Time in ns.

    Returns
    -------
    int
        ``DONE``, or which array must grow before the call is repeated.
    """
    S = reference(address)
    g = S.g
    heap = S.heap
    log_room = len(S.log) - RESERVE
    heap_room = len(heap) - RESERVE
    ring_room = len(S.tx)
    while g.heap_n > 0:
        e = heap[0]
        if e.t > until:
            break
        if g.free_n < RESERVE:
            return NEED_PACKETS
        if g.log_n > log_room:
            return NEED_LOG
        if g.heap_n > heap_room:
            return NEED_HEAP
        if g.ring_end + g.ring_need > ring_room:
            return NEED_RING
        g.now = e.t
        kind = e.kind
        i = e.index
        g.events += 1
        if kind == EV_LINK:
            p = deliver(S, i)
            if p >= 0:
                _forward(S, p)
            continue
        pop(g, heap)
        if kind == EV_PACE:
            on_pace(S, i)
        elif kind == EV_FREE:
            server_free(S, i)
        elif kind == EV_DELACK:
            on_delack(S, i)
        elif kind == EV_RTO:
            on_rto(S, i)
        elif kind == EV_REO:
            on_reo(S, i)
        elif kind == EV_PACKET:
            _forward(S, i)
        elif kind == EV_SOURCE:
            _source(S, i)
        elif kind == EV_APP:
            _application(S, i)
        elif kind == EV_START:
            S.conn[i].started = 1
            send_syn(S, S.conn[i].sub0)
        elif kind == EV_STOP:
            S.conn[i].data_end = min(S.conn[i].data_end, S.conn[i].data_nxt)
            S.conn[i].app_interval = 0
    g.now = until
    # Queues are brought up to date when packets arrive, and here for the caller to read.
    for li in range(len(S.link)):
        settle(S, S.link[li], until)
    return DONE


@compiled
def _forward(S: Any, p: int) -> None:
    """Pass a packet that has come through a link on to the next one, or to its end point."""
    S.g.packet_events += 1
    P = S.pkt[p]
    P.route += 1
    link = S.route[P.route]
    if link >= 0:
        enqueue(S, link, p)
        return
    kind = P.kind
    if kind == DATA:
        on_data(S, p)
    elif kind == ACK:
        on_ack(S, p)
        give_packet(S.g, S.pkt, p)
    elif kind == SYN:
        P.kind = SYNACK
        P.route = S.sub[P.owner].back
        enqueue(S, S.route[P.route], p)
    elif kind == SYNACK:
        on_synack(S, p)
        give_packet(S.g, S.pkt, p)
    else:
        source = S.src[P.owner]
        source.received += 1
        source.delay_sum += S.g.now - P.sent
        give_packet(S.g, S.pkt, p)


@compiled
def _application(S: Any, ci: int) -> None:
    """Give an application that writes at a rate its next piece of data."""
    c = S.conn[ci]
    if c.app_interval == 0:
        return
    c.data_end += c.app_chunk
    push(S.g, S.heap, S.g.now + c.app_interval, EV_APP, ci)
    push_data(S, ci)


@compiled
def _source(S: Any, i: int) -> None:
    """Cross traffic: send one packet, plan the next, rest between bursts."""
    g = S.g
    a = S.src[i]
    if a.stop >= 0 and g.now >= a.stop:
        return
    stream = len(S.link) + i
    if a.on > 0 and g.now >= a.until:
        rest = a.off
        burst = a.on
        if a.random_on != 0:
            rest = int(exponential(S.rng, stream, float(a.off)))
            burst = int(exponential(S.rng, stream, float(a.on)))
        a.until = g.now + rest + burst
        push(g, S.heap, g.now + rest, EV_SOURCE, i)
        return
    p = g.free_head
    P = S.pkt[p]
    g.free_head = P.next
    g.free_n -= 1
    P.kind = UDP
    P.owner = i
    P.wire = a.wire
    P.route = a.route
    P.sent = g.now
    P.ce = -1
    a.sent += 1
    gap = a.interval
    if a.poisson != 0:
        gap = int(exponential(S.rng, stream, float(a.interval)))
    push(g, S.heap, g.now + gap, EV_SOURCE, i)
    enqueue(S, S.route[P.route], p)
