"""The sending end: transmission and retransmission, as windows and pacing allow."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.dispatch import cc_restart
from data.netsim.heap import note, push, take_packet
from data.netsim.jit import compiled
from data.netsim.links import enqueue
from data.netsim.pacing import paced_out, spend_pace
from data.netsim.recovery import arm_rto, in_flight, unlink
from data.netsim.rings import shorter_ring
from data.netsim.scheduler import choose, has_data, next_data, ring_full
from data.netsim.state import (
    BURST,
    CWR,
    DATA,
    EV_PACE,
    F_EVER,
    F_LOST,
    F_RETRANS,
    F_SACKED,
    FAR,
    FIRST_RING,
    LOG_RETRANSMIT,
    RECOVERY,
)


@compiled
def transmit(S: Any, si: int, s: Any, n: int, data: int) -> None:
    """Send segment ``n``, for the first time (``n == snd_nxt``) or again."""
    g = S.g
    now = g.now
    again = n < s.snd_nxt
    if not again and n & (FIRST_RING - 1) == 0 and s.mask > FIRST_RING:
        shorter_ring(S, s)
    i = s.ring + (n & s.mask)
    X = S.tx[i]
    if again:
        if X.bits & F_LOST:
            s.to_retx -= 1
        else:
            unlink(S, s, i)
        if not X.bits & F_RETRANS:
            s.retrans_out += 1
        X.bits |= F_RETRANS | F_EVER
        s.retransmitted += 1
        if s.retrans_stamp < 0:
            s.retrans_stamp = now
        note(S, si, LOG_RETRANSMIT, 1)
    else:
        X.dsn = data
        X.bits = 0
        s.snd_nxt = n + 1
        if s.snd_nxt - s.snd_una == 1:
            cc_restart(s, now)
            s.first_tx = now
            s.delivered_t = now
    X.sent = now
    if s.rate != 0:
        R = S.rate[i]
        R.delivered = s.delivered
        R.delivered_t = s.delivered_t
        R.first_tx = s.first_tx
        R.app_limited = 1 if s.app_limited != 0 else 0
    X.next = -1
    X.prev = s.sent_tail
    if s.sent_tail >= 0:
        S.tx[s.sent_tail].next = i
    else:
        s.sent_head = i
    s.sent_tail = i
    s.sent += 1
    s.last_sent = now
    if s.ca_state == CWR or s.ca_state == RECOVERY:
        s.prr_out += 1
    p = take_packet(g, S.pkt)
    P = S.pkt[p]
    P.kind = DATA
    P.owner = si
    P.n = n
    P.wire = s.wire
    P.route = s.forward
    P.sent = now
    P.ce = s.ecn
    if s.rto_at == FAR or s.tlp != 0:
        arm_rto(S, si, s)
    enqueue(S, S.route[P.route], p)


@compiled
def _retransmit(S: Any, si: int, s: Any, room: int) -> int:
    """Send again what is lost, as far as the window allows; segments sent."""
    sent = 0
    n = max(s.retx_hint, s.snd_una)
    while s.to_retx > 0 and sent < room and in_flight(s) < s.cwnd:
        if paced_out(S, si, s):
            break
        while n < s.snd_nxt:
            flags = S.tx[s.ring + (n & s.mask)].bits
            if flags & F_LOST and not flags & (F_RETRANS | F_SACKED):
                break
            n += 1
        transmit(S, si, s, n, -1)
        spend_pace(S, s, 1)
        n += 1
        s.retx_hint = n
        sent += 1
    return sent


@compiled
def push_data(S: Any, ci: int) -> None:
    """Send what windows, pacing and data of a connection allow now."""
    c = S.conn[ci]
    sent = 0
    for si in range(c.sub0, c.sub0 + c.sub_n):
        s = S.sub[si]
        if s.established != 0:
            sent += _retransmit(S, si, s, BURST)
            _restart_after_idle(S, s)
    while sent < BURST:
        si = choose(S, c)
        if si < 0:
            break
        s = S.sub[si]
        burst = 1 if s.pacing == 0 else s.pace_burst
        out = 0
        while out < burst and in_flight(s) < s.cwnd and not ring_full(S, s):
            data = next_data(S, c, s)
            if data < 0:
                break
            transmit(S, si, s, s.snd_nxt, data)
            out += 1
        sent += out
        if out == 0:
            break
        spend_pace(S, s, out)
    if sent >= BURST:
        # The pool of packets is sized for one burst an event: go on in a new one.
        push(S.g, S.heap, S.g.now, EV_PACE, c.sub0)
    for si in range(c.sub0, c.sub0 + c.sub_n):
        _validate_window(S, c, S.sub[si])


@compiled
def _restart_after_idle(S: Any, s: Any) -> None:
    """Halve the window per RTO of silence (RFC 2861), as the kernel does by default."""
    if s.snd_nxt > s.snd_una or s.last_sent < 0 or s.pacing == 2:
        return
    idle = S.g.now - s.last_sent
    if idle > s.rto and s.cwnd > 10:
        s.ssthresh = max(s.ssthresh, (s.cwnd >> 1) + (s.cwnd >> 2)) if s.ssthresh < FAR else FAR
        while idle > s.rto and s.cwnd > 10:
            s.cwnd >>= 1
            idle -= s.rto
        s.cwnd = max(s.cwnd, 10)
        s.last_sent = S.g.now


@compiled
def _validate_window(S: Any, c: Any, s: Any) -> None:
    """Note whether the window was the limit (tcp_cwnd_validate) or the application."""
    if s.established == 0:
        return
    flight = in_flight(s)
    out = s.snd_nxt - s.snd_una
    limited = 1 if flight >= s.cwnd else 0
    if s.snd_una >= s.usage_seq or out > s.max_out or (limited != 0 and s.cwnd_limited == 0):
        s.cwnd_limited = limited
        s.max_out = out
        s.usage_seq = s.snd_nxt
    if limited == 0 and s.to_retx == 0 and not has_data(S, c, s):
        s.app_limited = max(1, s.delivered + flight)
