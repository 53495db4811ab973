"""The sending end: transmission, pacing, scheduling over subflows, handling of ACKs."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.dispatch import cc_acked, cc_avoid, cc_control, cc_start
from data.netsim.heap import note, push, take_packet
from data.netsim.jit import kernel
from data.netsim.links import enqueue
from data.netsim.recovery import (
    arm_rto,
    detect_lost,
    end_reduction,
    enter_cwr,
    enter_loss,
    enter_recovery,
    in_flight,
    reduce_window,
    set_state,
    undo,
    unlink,
)
from data.netsim.state import (
    BURST,
    CWR,
    DATA,
    DISORDER,
    EV_PACE,
    EV_REO,
    EV_RTO,
    F_EVER,
    F_LOST,
    F_RETRANS,
    F_SACKED,
    FAR,
    HISTOGRAM_BINS,
    LOG_ACK,
    LOG_CWND,
    LOG_RETRANSMIT,
    LOG_RTT,
    LOSS,
    OPEN,
    RECOVERY,
    REDUNDANT,
    ROUND_ROBIN,
    SYN,
)

_SYN_TIMEOUT = 1_000_000_000
_HEADER_SYN = 60


@kernel
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


@kernel
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
    _sample_rtt(s, S.g.now - P.sent)
    s.delivered_t = S.g.now
    s.first_tx = S.g.now
    c = S.conn[s.conn]
    cc_start(S.sub, c, s, S.g.now)
    _pace(s)
    for k in range(c.sub0, c.sub0 + c.sub_n):
        o = S.sub[k]
        if o.established == 0 and o.rto_at == FAR:
            send_syn(S, k)
    push_data(S, s.conn)


@kernel
def _sample_rtt(s: Any, rtt: int) -> None:
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


@kernel
def _pace(s: Any) -> None:
    """The kernel's pacing rate: twice the window per RTT in slow start, 1.2 times after."""
    if s.pacing == 1 and s.srtt > 0:
        ratio = 2.0 if s.cwnd < s.ssthresh // 2 else 1.2
        s.pacing_rate = ratio * max(s.cwnd, s.snd_nxt - s.snd_una) * s.wire * 1e9 / s.srtt
    if s.pacing != 0:
        # The kernel sends about a millisecond's worth at once.
        s.pace_burst = min(44, max(1, int(s.pacing_rate / 1024.0 / s.wire)))


@kernel
def transmit(S: Any, si: int, s: Any, n: int, data: int) -> None:
    """Send segment ``n``, for the first time (``n == snd_nxt``) or again."""
    g = S.g
    now = g.now
    i = s.ring + (n & s.mask)
    X = S.tx[i]
    again = n < s.snd_nxt
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
        note(g, S.log, si, LOG_RETRANSMIT, 1)
    else:
        X.seq = n
        X.dsn = data
        X.bits = 0
        s.snd_nxt = n + 1
        if s.snd_nxt - s.snd_una == 1:
            s.first_tx = now
            s.delivered_t = now
    X.sent = now
    X.delivered = s.delivered
    X.delivered_t = s.delivered_t
    X.first_tx = s.first_tx
    X.app_limited = 1 if s.app_limited != 0 else 0
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
    P.dsn = X.dsn
    P.wire = s.wire
    P.route = s.forward
    P.sent = now
    P.ce = s.ecn
    if s.rto_at == FAR or s.tlp != 0:
        arm_rto(S, si, s)
    enqueue(S, S.route[P.route], p)


@kernel
def _paced_out(S: Any, si: int, s: Any) -> bool:
    """Whether pacing forbids sending now; arms the timer for when it allows it again."""
    if s.pacing == 0 or s.pace_next <= S.g.now:
        return False
    s.pace_at = s.pace_next
    if s.pace_at < s.pace_ev:
        s.pace_ev = s.pace_at
        push(S.g, S.heap, s.pace_at, EV_PACE, si)
    return True


@kernel
def _spend_pace(S: Any, s: Any, segments: int) -> None:
    if s.pacing != 0 and s.pacing_rate > 0.0:
        span = int(segments * s.wire * 1e9 / s.pacing_rate)
        s.pace_next = max(s.pace_next, S.g.now) + span


@kernel
def _retransmit(S: Any, si: int, s: Any, room: int) -> int:
    """Send again what is lost, as far as the window allows; segments sent."""
    sent = 0
    n = max(s.retx_hint, s.snd_una)
    while s.to_retx > 0 and sent < room and in_flight(s) < s.cwnd:
        if _paced_out(S, si, s):
            break
        while n < s.snd_nxt:
            flags = S.tx[s.ring + (n & s.mask)].bits
            if flags & F_LOST and not flags & (F_RETRANS | F_SACKED):
                break
            n += 1
        transmit(S, si, s, n, -1)
        _spend_pace(S, s, 1)
        n += 1
        s.retx_hint = n
        sent += 1
    return sent


@kernel
def push_data(S: Any, ci: int) -> None:
    """Send what windows, pacing and data of a connection allow now.

    minRTT (tcco.txt eqs. 1-2) gives each segment to the subflow of smallest RTT whose window
    has room and which isn't in the Loss state; a subflow is skipped once it is paced out.
    """
    c = S.conn[ci]
    sent = 0
    for si in range(c.sub0, c.sub0 + c.sub_n):
        s = S.sub[si]
        if s.established != 0:
            sent += _retransmit(S, si, s, BURST)
            _restart_after_idle(S, s)
    while sent < BURST:
        si = _choose(S, c)
        if si < 0:
            break
        s = S.sub[si]
        burst = 1 if s.pacing == 0 else s.pace_burst
        out = 0
        while out < burst and in_flight(s) < s.cwnd and not _ring_full(S.g, si, s):
            data = _next_data(S, c, s)
            if data < 0:
                break
            transmit(S, si, s, s.snd_nxt, data)
            out += 1
        sent += out
        if out == 0:
            break
        _spend_pace(S, s, out)
    if sent >= BURST:
        # The pool of packets is sized for one burst an event: go on in a new one.
        push(S.g, S.heap, S.g.now, EV_PACE, c.sub0)
    for si in range(c.sub0, c.sub0 + c.sub_n):
        _validate_window(S, c, S.sub[si])


@kernel
def _choose(S: Any, c: Any) -> int:
    """Subflow for the next new segment, or -1."""
    best = -1
    best_rtt = FAR
    for k in range(c.sub_n):
        si = c.sub0 + (k + c.next_sub) % c.sub_n
        s = S.sub[si]
        if (
            s.established == 0
            or (c.sub_n > 1 and (s.ca_state == LOSS or (s.stale != 0 and _any_fresh(S, c))))
            or in_flight(s) >= s.cwnd
            or s.to_retx > 0
            or _ring_full(S.g, si, s)
            or not _has_data(S, c, s)
        ):
            continue
        if s.srtt < best_rtt and not _paced_out(S, si, s):
            best = si
            best_rtt = s.srtt
            if c.scheduler != 0 or c.sub_n == 1:
                break
    if c.scheduler == ROUND_ROBIN and best >= 0:
        c.next_sub = (best - c.sub0 + 1) % c.sub_n
    return best


@kernel
def _ring_full(g: Any, si: int, s: Any) -> bool:
    """Whether the ring has no place for a new segment; asks for a larger one where it may grow."""
    if s.snd_nxt - s.snd_una <= s.mask:
        return False
    if s.mask < s.mask_max:
        g.short_of_ring = si
    return True


@kernel
def _any_fresh(S: Any, c: Any) -> bool:
    for si in range(c.sub0, c.sub0 + c.sub_n):
        if S.sub[si].established != 0 and S.sub[si].stale == 0:
            return True
    return False


@kernel
def _has_data(S: Any, c: Any, s: Any) -> bool:
    if c.scheduler == REDUNDANT:
        limit = min(c.data_end, c.edge)
        return bool(max(s.redundant_nxt, c.data_una) < limit)
    if c.inject_head < c.inject_tail:
        return True
    return bool(c.data_nxt < c.data_end and c.data_nxt < c.edge)


@kernel
def _next_data(S: Any, c: Any, s: Any) -> int:
    """Data-level number of the next segment for a subflow, or -1 when there is none."""
    if c.scheduler == REDUNDANT:
        data = max(s.redundant_nxt, c.data_una)
        if data >= min(c.data_end, c.edge):
            return -1
        s.redundant_nxt = data + 1
        c.data_nxt = max(c.data_nxt, data + 1)
        return int(data)
    while c.inject_head < c.inject_tail:
        data = S.inject[c.inject_off + (c.inject_head & c.inject_mask)]
        c.inject_head += 1
        if data >= c.data_una:
            return int(data)
    if c.data_nxt < c.data_end and c.data_nxt < c.edge:
        c.data_nxt += 1
        return int(c.data_nxt - 1)
    return -1


@kernel
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


@kernel
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
    if limited == 0 and s.to_retx == 0 and not _has_data(S, c, s):
        s.app_limited = max(1, s.delivered + flight)


@kernel
def _mark_delivered(S: Any, s: Any, n: int) -> int:
    """One segment has newly arrived; its RTT, or -1 where a retransmission blurs it."""
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
    if s.rs_prior < 0 or X.sent >= s.rs_last_tx:
        # The sample is taken from the segment sent last (tcp_rate_skb_delivered).
        s.rs_prior = X.delivered
        s.rs_prior_t = X.delivered_t
        s.rs_first_tx = X.first_tx
        s.rs_last_tx = X.sent
        s.rs_app_limited = X.app_limited
        s.first_tx = X.sent
    if n < s.fack:
        if not flags & F_EVER:
            s.reordering = 1
    else:
        s.fack = n
    if flags & F_EVER and rtt < s.min_rtt:
        # Likely the original's ACK, not the retransmission's: no basis for RACK.
        return -1
    if X.sent > s.rack_t or (X.sent == s.rack_t and n > s.rack_seq):
        s.rack_t = X.sent
        s.rack_seq = n
        s.rack_rtt = rtt
    return -1 if flags & F_EVER else int(rtt)


@kernel
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
    s.rx_window = P.grant
    before = s.delivered
    lost_before = s.lost
    old_una = s.snd_una
    flight_before = in_flight(s)
    s.rs_prior = -1
    first_rtt = -1
    last_rtt = -1
    while s.seen < P.order:
        rtt = _mark_delivered(S, s, S.rxlog[s.ring + (s.seen & s.mask)])
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
        _sample_rtt(s, first_rtt)
        b = _bin(first_rtt)
        S.hist[si, b] += 1
        note(g, S.log, si, LOG_RTT, last_rtt // 1000)
    s.rs_rtt = last_rtt
    s.rs_delivered = -1
    s.rs_interval = -1
    if s.rs_prior >= 0:
        send_span = s.rs_last_tx - s.rs_first_tx
        span = max(send_span, now - s.rs_prior_t)
        if span >= s.min_rtt:
            s.rs_delivered = s.delivered - s.rs_prior
            s.rs_interval = span
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
    s.rs_losses = s.lost - lost_before
    if not cc_control(S.sub, c, s, newly, flight_before, now):
        if s.ca_state == CWR or s.ca_state == RECOVERY:
            reduce_window(s, newly, s.lost - lost_before, advanced)
        elif advanced and newly > 0:
            cc_avoid(S.sub, c, s, newly, now)
        _pace(s)
    s.cwnd = max(1, min(s.cwnd, s.clamp))
    if advanced:
        note(g, S.log, si, LOG_ACK, s.snd_una * s.payload)
    if advanced or s.snd_una != old_una or newly > 0:
        note(g, S.log, si, LOG_CWND, s.cwnd)
    push_data(S, ci)


@kernel
def _bin(rtt: int) -> int:
    """Bin of the RTT histogram: exponent and five bits of mantissa, in microseconds."""
    us = rtt // 1000
    if us < 32:
        return us
    shift = 0
    while (us >> shift) >= 64:
        shift += 1
    return min(HISTOGRAM_BINS - 1, 32 * (shift + 1) + ((us >> shift) & 31))


@kernel
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


@kernel
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


@kernel
def on_pace(S: Any, si: int) -> None:
    """The pacing timer's event is due (or a burst goes on)."""
    s = S.sub[si]
    if s.pace_ev <= S.g.now:
        s.pace_ev = FAR
    push_data(S, s.conn)


@kernel
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
        _hand_over(S, c, s)
    arm_rto(S, si, s)
    push_data(S, s.conn)


@kernel
def _probe(S: Any, si: int, s: Any) -> None:
    """Tail loss probe: new data if there is some, else the last segment once more."""
    c = S.conn[s.conn]
    s.tlp_t = S.g.now
    data = -1
    if not _ring_full(S.g, si, s):
        data = _next_data(S, c, s)
    # While a probe is out, arm_rto() sets the plain timer.
    s.tlp_seq = s.snd_nxt if data >= 0 else s.snd_nxt - 1
    transmit(S, si, s, s.tlp_seq, data)
    arm_rto(S, si, s)
    if data >= 0:
        s.tlp_seq = -1


@kernel
def _hand_over(S: Any, c: Any, s: Any) -> None:
    """Queue a silent subflow's unacknowledged data for the other subflows."""
    for n in range(s.snd_una, s.snd_nxt):
        X = S.tx[s.ring + (n & s.mask)]
        if X.dsn >= c.data_una and c.inject_tail - c.inject_head <= c.inject_mask:
            S.inject[c.inject_off + (c.inject_tail & c.inject_mask)] = X.dsn
            c.inject_tail += 1
