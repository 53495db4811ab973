"""Loss detection and recovery as in Linux: RACK, PRR, congestion states, undo, RTO, TLP.

RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 6298 (timer) and RFC 3522 (Eifel detection by
timestamps), with the state names and transitions of Linux' tcp_input.c.
"""

from __future__ import annotations

from typing import Any

from data.netsim.cc.dispatch import cc_set_state, cc_ssthresh
from data.netsim.heap import note, push
from data.netsim.jit import compiled
from data.netsim.rings import number
from data.netsim.state import (
    CWR,
    DISORDER,
    EV_REO,
    EV_RTO,
    F_EVER,
    F_LOST,
    F_RETRANS,
    F_SACKED,
    FAR,
    LOG_STATE,
    LOSS,
    OPEN,
    RECOVERY,
)

RTO_MAX = 120_000_000_000
_DUPTHRESH = 3


@compiled
def in_flight(s: Any) -> int:
    """Segments believed to be in the network."""
    return int(s.snd_nxt - s.snd_una - s.sacked_out - s.lost_out + s.retrans_out)


@compiled
def unlink(S: Any, s: Any, i: int) -> None:
    """Take a segment off the list of transmissions in order of sending."""
    X = S.tx[i]
    if X.prev >= 0:
        S.tx[X.prev].next = X.next
    else:
        s.sent_head = X.next
    if X.next >= 0:
        S.tx[X.next].prev = X.prev
    else:
        s.sent_tail = X.prev


@compiled
def mark_lost(s: Any, X: Any, n: int) -> None:
    """Count a segment as lost; a lost retransmission becomes due again."""
    if X.bits & F_RETRANS:
        X.bits &= ~F_RETRANS
        s.retrans_out -= 1
    if not X.bits & F_LOST:
        X.bits |= F_LOST
        s.lost_out += 1
    s.to_retx += 1
    s.lost += 1
    s.retx_hint = min(s.retx_hint, n)


@compiled
def set_state(S: Any, si: int, s: Any, state: int) -> None:
    """Enter a congestion state, and report it to the congestion control and the log."""
    if s.ca_state != state:
        cc_set_state(S.sub, S.conn[s.conn], s, state, S.g.now)
        s.ca_state = state
        note(S, si, LOG_STATE, state)


@compiled
def arm_rto(S: Any, si: int, s: Any) -> None:
    """(Re)start the retransmission timer, as a tail loss probe if one is allowed."""
    g = S.g
    s.tlp = 0
    if s.snd_una == s.snd_nxt:
        s.rto_at = FAR
        return
    wait = min(s.rto << min(s.backoff, 16), RTO_MAX)
    if s.ca_state == OPEN and s.sacked_out == 0 and s.srtt > 0 and s.tlp_seq < 0:
        probe = 2 * s.srtt
        if s.snd_nxt - s.snd_una == 1:
            probe += s.rto_min
        else:
            probe += 2_000_000
        if probe < wait:
            wait = probe
            s.tlp = 1
    s.rto_at = g.now + wait
    if s.rto_at < s.rto_ev:
        s.rto_ev = s.rto_at
        push(g, S.heap, s.rto_at, EV_RTO, si)


@compiled
def detect_lost(S: Any, si: int, s: Any) -> int:
    """RACK: what was sent a reordering window before something delivered is lost.

    Returns
    -------
    int
        Segments newly marked lost.
    """
    if s.rack_t < 0:
        return 0
    now = S.g.now
    window = 0
    if s.reordering != 0 or (s.ca_state < RECOVERY and s.sacked_out < _DUPTHRESH):
        window = min(s.min_rtt // 4, s.srtt)
    marked = 0
    s.reo_at = FAR
    i = s.sent_head
    while i >= 0:
        X = S.tx[i]
        n = number(s, i)
        if X.sent > s.rack_t or (X.sent == s.rack_t and n >= s.rack_seq):
            break
        left = X.sent + s.rack_rtt + window - now
        if left > 0:
            s.reo_at = now + left
            if s.reo_at < s.reo_ev:
                s.reo_ev = s.reo_at
                push(S.g, S.heap, s.reo_at, EV_REO, si)
            break
        following = X.next
        unlink(S, s, i)
        mark_lost(s, X, n)
        marked += 1
        i = following
    return marked


@compiled
def start_reduction(S: Any, s: Any) -> None:
    """Begin a proportional rate reduction towards the congestion control's ssthresh."""
    s.high_seq = s.snd_nxt
    s.tlp_seq = -1
    s.cwnd_cnt = 0
    s.prior_cwnd = s.cwnd
    s.prr_delivered = 0
    s.prr_out = 0
    s.ssthresh = cc_ssthresh(S.sub, S.conn[s.conn], s, S.g.now)


@compiled
def enter_cwr(S: Any, si: int, s: Any) -> None:
    """React to an ECN mark or a repaired tail loss: reduce without retransmitting."""
    if s.ca_state < CWR:
        s.prior_ssthresh = s.ssthresh
        s.undo = -1
        start_reduction(S, s)
        set_state(S, si, s, CWR)


@compiled
def _forget_retransmissions(S: Any, s: Any) -> None:
    """The next retransmission is the first, unless one of before may still arrive."""
    head = S.tx[s.ring + (s.snd_una & s.mask)]
    if s.retrans_out == 0 and not head.bits & F_EVER:
        s.retrans_stamp = -1


@compiled
def enter_recovery(S: Any, si: int, s: Any) -> None:
    """Start fast recovery; in CWR the reduction under way goes on."""
    s.undo = s.snd_una
    _forget_retransmissions(S, s)
    if s.ca_state < CWR:
        s.prior_ssthresh = s.ssthresh
        start_reduction(S, s)
    else:
        s.high_seq = s.snd_nxt
    set_state(S, si, s, RECOVERY)


@compiled
def end_reduction(s: Any) -> None:
    """Recovery or CWR is over: the window is what the congestion control asked for."""
    if s.own == 0 and s.ssthresh < FAR and (s.ca_state == CWR or s.undo >= 0):
        s.cwnd = s.ssthresh


@compiled
def reduce_window(s: Any, newly_delivered: int, newly_lost: int, advanced: bool) -> None:
    """One step of PRR with the slow-start reduction bound."""
    if newly_delivered <= 0 or s.prior_cwnd == 0:
        return
    s.prr_delivered += newly_delivered
    flight = in_flight(s)
    delta = s.ssthresh - flight
    if delta < 0:
        n = (s.ssthresh * s.prr_delivered + s.prior_cwnd - 1) // s.prior_cwnd - s.prr_out
    else:
        n = max(s.prr_delivered - s.prr_out, newly_delivered)
        if advanced and newly_lost == 0:
            n += 1
        n = min(delta, n)
    n = max(n, 0 if s.prr_out > 0 else 1)
    s.cwnd = flight + n


@compiled
def undo(S: Any, s: Any, unmark: bool) -> None:
    """The reduction was for nothing: put window and threshold back."""
    if unmark:
        i = s.snd_nxt - 1
        while i >= s.snd_una:
            X = S.tx[s.ring + (i & s.mask)]
            if X.bits & F_LOST:
                X.bits &= ~F_LOST
                if not X.bits & F_RETRANS:
                    _relink(S, s, s.ring + (i & s.mask))
            i -= 1
        s.lost_out = 0
        s.to_retx = 0
        s.retx_hint = s.snd_nxt
    if s.own == 0:
        s.cwnd = max(s.cwnd, s.prior_cwnd)
        s.ssthresh = max(s.ssthresh, s.prior_ssthresh)
    s.undo = -1


@compiled
def _relink(S: Any, s: Any, i: int) -> None:
    """Put a segment that is not lost after all back at the front of the list."""
    X = S.tx[i]
    if X.bits & F_SACKED:
        return
    X.prev = -1
    X.next = s.sent_head
    if s.sent_head >= 0:
        S.tx[s.sent_head].prev = i
    else:
        s.sent_tail = i
    s.sent_head = i


@compiled
def enter_loss(S: Any, si: int, s: Any) -> None:
    """The retransmission timer went off: all that was not sent just now is lost."""
    if s.ca_state <= DISORDER or s.snd_una >= s.high_seq:
        s.prior_ssthresh = s.ssthresh
        s.prior_cwnd = s.cwnd
        s.ssthresh = cc_ssthresh(S.sub, S.conn[s.conn], s, S.g.now)
        s.undo = s.snd_una
        _forget_retransmissions(S, s)
    now = S.g.now
    i = s.sent_head
    while i >= 0:
        X = S.tx[i]
        following = X.next
        n = number(s, i)
        if n == s.snd_una or s.rack_rtt <= 0 or X.sent + s.rack_rtt <= now:
            unlink(S, s, i)
            mark_lost(s, X, n)
        i = following
    s.cwnd = in_flight(s) + 1
    s.cwnd_cnt = 0
    s.high_seq = s.snd_nxt
    s.tlp_seq = -1
    s.prr_delivered = 0
    s.prr_out = 0
    set_state(S, si, s, LOSS)
    s.timeouts += 1
