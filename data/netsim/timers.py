"""The timers of the sending end: retransmission and probe, reordering, pacing."""

from __future__ import annotations

from typing import Any

from data.netsim.handshake import send_syn
from data.netsim.heap import push
from data.netsim.jit import compiled
from data.netsim.recovery import arm_rto, detect_lost, enter_loss, enter_recovery
from data.netsim.scheduler import hand_over, next_data, ring_full
from data.netsim.sender import push_data, transmit
from data.netsim.state import EV_REO, EV_RTO, FAR, RECOVERY, REDUNDANT


@compiled
def on_reo(S: Any, si: int) -> None:
    """The reordering timer's event is due."""
    s = S.sub[si]
    s.reo_ev = FAR
    if s.reo_at == FAR:
        return
    if s.reo_at > S.g.now:
        s.reo_ev = s.reo_at
        push(S.g, S.heap, s.reo_at, EV_REO, si)
        return
    s.reo_at = FAR
    if detect_lost(S, si, s) > 0 and s.ca_state < RECOVERY:
        enter_recovery(S, si, s)
    if s.to_retx > 0:
        push_data(S, s.conn)


@compiled
def on_pace(S: Any, si: int) -> None:
    """The pacing timer's event is due (or a burst goes on)."""
    s = S.sub[si]
    if s.pace_ev <= S.g.now:
        s.pace_ev = FAR
    push_data(S, s.conn)


@compiled
def on_rto(S: Any, si: int) -> None:
    """The retransmission timer's event is due: probe, or time out."""
    s = S.sub[si]
    g = S.g
    if s.rto_ev != g.now:
        # An earlier deadline has overtaken this event.
        return
    s.rto_ev = FAR
    if s.rto_at == FAR:
        return
    if s.rto_at > g.now:
        s.rto_ev = s.rto_at
        push(g, S.heap, s.rto_at, EV_RTO, si)
        return
    s.rto_at = FAR
    if s.established == 0:
        s.backoff += 1
        send_syn(S, si)
        return
    if s.tlp != 0:
        _probe(S, si, s)
        return
    enter_loss(S, si, s)
    s.backoff += 1
    c = S.conn[s.conn]
    if c.sub_n > 1 and c.scheduler != REDUNDANT and s.stale == 0:
        s.stale = 1
        hand_over(S, c, s)
    arm_rto(S, si, s)
    push_data(S, s.conn)


@compiled
def _probe(S: Any, si: int, s: Any) -> None:
    """Tail loss probe: new data if there is some, else the last segment once more."""
    c = S.conn[s.conn]
    s.tlp_t = S.g.now
    data = -1
    if not ring_full(S, s):
        data = next_data(S, c, s)
    # While a probe is out, arm_rto() sets the plain timer.
    s.tlp_seq = s.snd_nxt if data >= 0 else s.snd_nxt - 1
    transmit(S, si, s, s.tlp_seq, data)
    arm_rto(S, si, s)
    if data >= 0:
        s.tlp_seq = -1
