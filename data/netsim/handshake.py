"""The handshake of a subflow."""

from __future__ import annotations

from typing import Any

from data.netsim.acks import sample_rtt
from data.netsim.cc.dispatch import cc_start
from data.netsim.heap import push, take_packet
from data.netsim.jit import compiled
from data.netsim.links import enqueue
from data.netsim.pacing import set_pacing
from data.netsim.sender import push_data
from data.netsim.state import EV_RTO, FAR, SYN

_SYN_TIMEOUT = 1_000_000_000
_HEADER_SYN = 60


@compiled
def send_syn(S: Any, si: int) -> None:
    """Send the first packet of a subflow's handshake and arm its timer."""
    s = S.sub[si]
    g = S.g
    p = take_packet(g, S.pkt)
    P = S.pkt[p]
    P.kind = SYN
    P.owner = si
    P.wire = _HEADER_SYN
    P.route = s.forward
    P.sent = g.now
    P.ce = -1
    s.rto_at = g.now + (_SYN_TIMEOUT << min(s.backoff, 6))
    s.rto_ev = s.rto_at
    push(g, S.heap, s.rto_at, EV_RTO, si)
    enqueue(S, S.route[P.route], p)


@compiled
def on_synack(S: Any, p: int) -> None:
    """The handshake is done: first RTT sample, first data, further subflows join."""
    P = S.pkt[p]
    si = P.owner
    s = S.sub[si]
    if s.established != 0:
        return
    s.established = 1
    s.backoff = 0
    s.rto_at = FAR
    sample_rtt(s, S.g.now - P.sent)
    s.delivered_t = S.g.now
    s.first_tx = S.g.now
    c = S.conn[s.conn]
    cc_start(S.sub, c, s, S.g.now)
    set_pacing(s)
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = S.sub[k]
        if o.established == 0 and o.rto_at == FAR:
            send_syn(S, k)
    push_data(S, s.conn)
