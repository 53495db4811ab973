"""The sending end processes an ACK, in the order of Linux' tcp_ack()."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.dispatch import cc_acked, cc_avoid, cc_control
from data.netsim.heap import note
from data.netsim.jit import compiled
from data.netsim.pacing import set_pacing
from data.netsim.recovery import (
    arm_rto,
    detect_lost,
    end_reduction,
    enter_cwr,
    enter_recovery,
    in_flight,
    reduce_window,
    set_state,
    undo,
    unlink,
)
from data.netsim.sender import push_data
from data.netsim.state import (
    CWR,
    DISORDER,
    F_EVER,
    F_LOST,
    F_RETRANS,
    F_SACKED,
    HISTOGRAM_BINS,
    LOG_ACK,
    LOG_CWND,
    LOG_RTT,
    LOSS,
    OPEN,
    RECOVERY,
)


@compiled
def sample_rtt(s: Any, rtt: int) -> None:
    """RFC 6298 with the kernel's floor under the variation term."""
    s.last_rtt = rtt
    if s.srtt == 0:
        s.srtt = rtt
        s.rttvar = rtt // 2
    else:
        s.rttvar += (abs(rtt - s.srtt) - s.rttvar) // 4
        s.srtt += (rtt - s.srtt) // 8
    s.rto = s.srtt + max(s.rto_min, 4 * s.rttvar)
    s.min_rtt = min(s.min_rtt, rtt)
    s.rtt_sum += rtt
    s.rtt_n += 1


@compiled
def _mark_delivered(S: Any, s: Any, n: int) -> int:
    """One segment has newly arrived; its RTT, or -1 if a retransmission blurs it."""
    i = s.ring + (n & s.mask)
    X = S.tx[i]
    flags = X.bits
    if flags & F_LOST:
        s.lost_out -= 1
        if flags & F_RETRANS:
            unlink(S, s, i)
        else:
            s.to_retx -= 1
    else:
        unlink(S, s, i)
    if flags & F_RETRANS:
        s.retrans_out -= 1
    X.bits = F_SACKED | (flags & F_EVER)
    s.sacked_out += 1
    s.delivered += 1
    rtt = S.g.now - X.sent
    if s.rate != 0 and (s.rs_prior < 0 or X.sent >= s.rs_last_tx):
        # The sample is taken from the segment sent last (tcp_rate_skb_delivered).
        R = S.rate[i]
        s.rs_prior = R.delivered
        s.rs_prior_t = R.delivered_t
        s.rs_first_tx = R.first_tx
        s.rs_last_tx = X.sent
        s.rs_app_limited = R.app_limited
        s.first_tx = X.sent
    if n < s.fack:
        if not flags & F_EVER:
            s.reordering = 1
    else:
        s.fack = n
    if flags & F_EVER and rtt < s.min_rtt:
        # Likely the original's ACK, not the retransmission's: no basis for RACK.
        return -1
    s.rack_rtt = rtt
    if X.sent > s.rack_t or (X.sent == s.rack_t and n > s.rack_seq):
        s.rack_t = X.sent
        s.rack_seq = n
    return -1 if flags & F_EVER else int(rtt)


@compiled
def on_ack(S: Any, p: int) -> None:
    """Process an ACK, in the order of tcp_ack()."""
    P = S.pkt[p]
    si = P.owner
    s = S.sub[si]
    ci = s.conn
    c = S.conn[ci]
    g = S.g
    now = g.now
    s.acks += 1
    if P.dsn > c.data_una:
        c.data_una = P.dsn
        c.edge = P.dsn + c.window
    s.granted = P.grant
    before = s.delivered
    lost_before = s.lost
    old_una = s.snd_una
    flight_before = in_flight(s)
    if s.rate != 0:
        s.rs_prior = -1
    first_rtt = -1
    last_rtt = -1
    while s.seen < P.order:
        rtt = _mark_delivered(S, s, S.rx[s.ring + (s.seen & s.mask)].nth)
        s.seen += 1
        if rtt >= 0:
            first_rtt = max(first_rtt, rtt)
            last_rtt = rtt
    advanced = P.n > s.snd_una
    if advanced:
        s.sacked_out -= P.n - s.snd_una
        s.snd_una = P.n
        s.backoff = 0
        s.stale = 0
    newly = s.delivered - before
    if newly > 0:
        s.delivered_t = now
    if s.app_limited != 0 and s.delivered > s.app_limited:
        s.app_limited = 0
    if first_rtt >= 0:
        sample_rtt(s, first_rtt)
        b = _bin(first_rtt)
        S.hist[si, b] += 1
        note(S, si, LOG_RTT, last_rtt // 1000)
    if s.rate != 0:
        _sample_rate(s, last_rtt, now)
    s.ce_acked = P.marks
    cc_acked(S.sub, c, s, newly, last_rtt, P.marks, now)
    if s.tlp_seq >= 0 and P.n > s.tlp_seq:
        # The probe repaired a loss if it was what arrived first.
        if P.sent >= s.tlp_t and s.ca_state == OPEN:
            enter_cwr(S, si, s)
        s.tlp_seq = -1
    _alert(S, si, s, advanced, P.marks, P.sent)
    if advanced:
        arm_rto(S, si, s)
    if s.rate != 0:
        s.rs_losses = s.lost - lost_before
    if not cc_control(S.sub, c, s, newly, flight_before, now):
        if s.ca_state == CWR or s.ca_state == RECOVERY:
            reduce_window(s, newly, s.lost - lost_before, advanced)
        elif advanced and newly > 0:
            cc_avoid(S.sub, c, s, newly if s.per_ack == 0 else 1, now)
        set_pacing(s)
    s.cwnd = max(1, min(s.cwnd, s.clamp))
    if advanced:
        note(S, si, LOG_ACK, s.snd_una * s.payload)
    if advanced or s.snd_una != old_una or newly > 0:
        note(S, si, LOG_CWND, s.cwnd)
    push_data(S, ci)


@compiled
def _sample_rate(s: Any, rtt: int, now: int) -> None:
    """tcp_rate_gen(): what was delivered over how long since the segment sent last was sent."""
    s.rs_rtt = rtt
    s.rs_delivered = -1
    s.rs_interval = -1
    if s.rs_prior >= 0:
        span = max(s.rs_last_tx - s.rs_first_tx, now - s.rs_prior_t)
        if span >= s.min_rtt:
            s.rs_delivered = s.delivered - s.rs_prior
            s.rs_interval = span


@compiled
def _bin(rtt: int) -> int:
    """Bin of the RTT histogram: exponent and five bits of mantissa, in microseconds."""
    us = rtt // 1000
    if us < 32:
        return us
    shift = 0
    while (us >> shift) >= 64:
        shift += 1
    return min(HISTOGRAM_BINS - 1, 32 * (shift + 1) + ((us >> shift) & 31))


@compiled
def _alert(S: Any, si: int, s: Any, advanced: bool, marks: int, echo: int) -> None:
    """tcp_fastretrans_alert(): leave and enter congestion states."""
    una = s.snd_una
    state = s.ca_state
    if (
        state >= RECOVERY
        and advanced
        and s.undo >= 0
        and s.retrans_stamp >= 0
        and echo < s.retrans_stamp
    ):
        # What arrived was sent before the first retransmission (RFC 3522): all a mistake.
        if state == RECOVERY and una < s.high_seq and s.retrans_out > 0:
            # While retransmissions are out nothing is undone, nor more taken for lost.
            return
        undo(S, s, True)
        set_state(S, si, s, OPEN)
    if s.ca_state >= CWR and una >= s.high_seq:
        if s.ca_state == LOSS:
            set_state(S, si, s, OPEN)
        elif s.ca_state == RECOVERY or una > s.high_seq:
            end_reduction(s)
            set_state(S, si, s, OPEN)
        s.undo = -1
    lost = detect_lost(S, si, s)
    if s.ca_state >= RECOVERY:
        return
    if lost > 0 or s.lost_out > 0:
        enter_recovery(S, si, s)
        return
    if marks > 0 and s.ca_state != CWR:
        enter_cwr(S, si, s)
    elif s.ca_state < CWR:
        set_state(S, si, s, DISORDER if s.sacked_out > 0 else OPEN)
