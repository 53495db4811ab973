"""The receiving end: reassembly per subflow and per connection, acknowledgements.

A segment's place in the order of arrival is logged, and an ACK carries how many arrivals the
receiver had seen. So the sender learns exactly what SACK blocks without a limit would say, also
when ACKs are lost or delayed.
"""

from __future__ import annotations

from typing import Any

from data.netsim.cc.dispatch import cc_receive
from data.netsim.heap import give_packet, push, take_packet
from data.netsim.jit import compiled
from data.netsim.links import enqueue
from data.netsim.state import ACK, EV_DELACK, FAR


@compiled
def on_data(S: Any, p: int) -> None:
    """A data segment arrives."""
    g = S.g
    P = S.pkt[p]
    si = P.owner
    s = S.sub[si]
    now = g.now
    n = P.n
    delay = now - P.sent
    s.owd_sum += delay
    s.owd_n += 1
    cc_receive(s, P.sent, now)
    at_once = True
    slot = s.ring + (n & s.mask)
    if n >= s.rcv_nxt and S.rx[slot].came != n:
        S.rx[slot].came = n
        S.rx[s.ring + (s.order & s.mask)].nth = n
        s.order += 1
        s.received += 1
        if n == s.rcv_nxt:
            first = n
            while S.rx[s.ring + (s.rcv_nxt & s.mask)].came == s.rcv_nxt:
                _reassemble(S, s, S.tx[s.ring + (s.rcv_nxt & s.mask)].dsn)
                s.rcv_nxt += 1
            at_once = s.rcv_nxt > first + 1 or s.order > s.rcv_nxt
    if P.ce > 0:
        s.pending_ce += 1
    if s.pending == 0:
        s.pending_t = P.sent
    s.pending += 1
    if s.quick > 0:
        s.quick -= 1
        at_once = True
    if at_once or (s.pending >= s.ack_every and s.read_every == 0):
        acknowledge(S, s, p)
        return
    give_packet(g, S.pkt, p)
    due = min(s.delack_at, now + s.ack_delay)
    if s.pending >= s.ack_every:
        # The window can't move before the application reads; then the ACK goes out
        # (__tcp_ack_snd_check, tcp_cleanup_rbuf).
        due = min(due, now - now % s.read_every + s.read_every)
    if due < s.delack_at:
        s.delack_at = due
        if due < s.delack_ev:
            s.delack_ev = due
            push(g, S.heap, due, EV_DELACK, si)


@compiled
def _reassemble(S: Any, s: Any, data: int) -> None:
    """In-order data of a subflow reaches the connection."""
    c = S.conn[s.conn]
    if c.sub_n == 1:
        c.data_rcv += 1
    else:
        slot = c.meta_off + (data & c.meta_mask)
        if data < c.data_rcv or S.meta[slot] == data:
            c.duplicates += 1
            return
        S.meta[slot] = data
        c.held_sum += c.held * (S.g.now - c.held_t)
        c.held_t = S.g.now
        c.held += 1
        while S.meta[c.meta_off + (c.data_rcv & c.meta_mask)] == c.data_rcv:
            c.data_rcv += 1
            c.held -= 1
    if c.data_rcv >= c.data_end and c.done_t < 0:
        c.done_t = S.g.now


@compiled
def acknowledge(S: Any, s: Any, p: int) -> None:
    """Send an ACK of everything so far, in packet ``p``."""
    P = S.pkt[p]
    c = S.conn[s.conn]
    P.kind = ACK
    P.wire = s.ack_size
    P.route = s.back
    P.n = s.rcv_nxt
    P.order = s.order
    P.sent = s.pending_t
    P.ce = -1
    P.dsn = c.data_rcv
    P.marks = s.pending_ce
    P.grant = s.rx_window
    s.pending = 0
    s.pending_ce = 0
    s.delack_at = FAR
    enqueue(S, S.route[P.route], p)


@compiled
def on_delack(S: Any, si: int) -> None:
    """The delayed-ACK timer's event is due."""
    s = S.sub[si]
    s.delack_ev = FAR
    if s.delack_at == FAR:
        return
    if s.delack_at > S.g.now:
        s.delack_ev = s.delack_at
        push(S.g, S.heap, s.delack_at, EV_DELACK, si)
        return
    p = take_packet(S.g, S.pkt)
    S.pkt[p].owner = si
    acknowledge(S, s, p)
