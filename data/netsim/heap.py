"""Binary heap of events ordered by (time, sequence), free list of packets, event log."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled, inlined
from data.netsim.seen import see
from data.netsim.state import LOGGED, VARIABLES, WATCHED


@inlined
def _later(a: Any, b: Any) -> int:
    """1 if ``a`` comes after ``b``, else 0; if times are equal, which is rare, by sequence.

    It is the sign of a difference: a branch on the order of two events would often be mispredicted.
    """
    if a.t == b.t:
        return int(a.seq > b.seq)
    return int((b.t - a.t) >> 63 & 1)


@inlined
def _put(e: Any, t: int, seq: int, kind: int, index: int) -> None:
    e.t = t
    e.seq = seq
    e.kind = kind
    e.index = index


@compiled
def _place(heap: Any, i: int, t: int, seq: int, kind: int, index: int) -> None:
    """Put an event into the hole ``i``, or above it."""
    while i > 0:
        parent = (i - 1) >> 1
        p = heap[parent]
        if p.t < t or (p.t == t and p.seq < seq):
            break
        _put(heap[i], p.t, p.seq, p.kind, p.index)
        i = parent
    _put(heap[i], t, seq, kind, index)


@compiled
def push_at(g: Any, heap: Any, t: int, seq: int, kind: int, index: int) -> None:
    """Add an event with a given place in the order."""
    g.heap_n += 1
    _place(heap, g.heap_n - 1, t, seq, kind, index)


@inlined
def push(g: Any, heap: Any, t: int, kind: int, index: int) -> None:
    """Add an event after all others of the same time."""
    g.seq += 1
    push_at(g, heap, t, g.seq, kind, index)


@compiled
def pop(g: Any, heap: Any) -> None:
    """Remove the first event: the hole sinks to a leaf, the last event rises from there."""
    n = g.heap_n - 1
    g.heap_n = n
    if n == 0:
        return
    i = 0
    child = 1
    while child < n:
        if child + 1 < n:
            child += _later(heap[child], heap[child + 1])
        c = heap[child]
        _put(heap[i], c.t, c.seq, c.kind, c.index)
        i = child
        child = 2 * i + 1
    last = heap[n]
    _place(heap, i, last.t, last.seq, last.kind, last.index)


@compiled
def replace_first(g: Any, heap: Any, t: int, seq: int, kind: int, index: int) -> None:
    """Remove the first event and add another, which may well be the first again."""
    n = g.heap_n
    i = 0
    child = 1
    while child < n:
        if child + 1 < n:
            child += _later(heap[child], heap[child + 1])
        c = heap[child]
        if t < c.t or (t == c.t and seq < c.seq):
            break
        _put(heap[i], c.t, c.seq, c.kind, c.index)
        i = child
        child = 2 * i + 1
    _put(heap[i], t, seq, kind, index)


@inlined
def take_packet(g: Any, pkt: Any) -> int:
    """Index of a free packet; the event loop has seen to it that there is one."""
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
def note(S: Any, sub: int, variable: int, value: int) -> None:
    """Log one observation of a subflow, sum it up for an agent, or neither: as ``log_on`` says."""
    g = S.g
    if g.log_on != 0:
        if g.log_on & LOGGED != 0:
            e = S.log[g.log_n]
            e.t = g.now
            e.sub = sub
            e.variable = variable
            e.value = value
            g.log_n += 1
        if g.log_on & WATCHED != 0:
            see(S.seen[sub * VARIABLES + variable], value)
