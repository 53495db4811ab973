"""Binary heap of events ordered by (time, sequence), free list of packets, event log."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import inlined, kernel


@kernel
def push_at(g: Any, heap: Any, t: int, seq: int, kind: int, index: int) -> None:
    """Add an event with a given place in the order."""
    i = g.heap_n
    g.heap_n = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        p = heap[parent]
        if p.t < t or (p.t == t and p.seq < seq):
            break
        e = heap[i]
        e.t = p.t
        e.seq = p.seq
        e.kind = p.kind
        e.index = p.index
        i = parent
    e = heap[i]
    e.t = t
    e.seq = seq
    e.kind = kind
    e.index = index


@inlined
def push(g: Any, heap: Any, t: int, kind: int, index: int) -> None:
    """Add an event after all others of the same time."""
    g.seq += 1
    push_at(g, heap, t, g.seq, kind, index)


@kernel
def pop(g: Any, heap: Any) -> None:
    """Remove the first event."""
    n = g.heap_n - 1
    g.heap_n = n
    if n == 0:
        return
    last = heap[n]
    t = last.t
    seq = last.seq
    i = 0
    child = 1
    while child < n:
        c = heap[child]
        if child + 1 < n:
            d = heap[child + 1]
            if d.t < c.t or (d.t == c.t and d.seq < c.seq):
                child += 1
                c = d
        if t < c.t or (t == c.t and seq < c.seq):
            break
        e = heap[i]
        e.t = c.t
        e.seq = c.seq
        e.kind = c.kind
        e.index = c.index
        i = child
        child = 2 * i + 1
    e = heap[i]
    e.t = t
    e.seq = seq
    e.kind = last.kind
    e.index = last.index


@inlined
def take_packet(g: Any, pkt: Any) -> int:
    """Index of a free packet; the kernel has seen to it that there is one."""
    p = g.free_head
    g.free_head = pkt[p].next
    g.free_n -= 1
    return int(p)


@inlined
def give_packet(g: Any, pkt: Any, p: int) -> None:
    """Return a packet to the free list."""
    pkt[p].next = g.free_head
    g.free_head = p
    g.free_n += 1


@inlined
def note(g: Any, log: Any, sub: int, variable: int, value: int) -> None:
    """Log one observation of a subflow, if logging is on."""
    if g.log_on != 0:
        e = log[g.log_n]
        e.t = g.now
        e.sub = sub
        e.variable = variable
        e.value = value
        g.log_n += 1
