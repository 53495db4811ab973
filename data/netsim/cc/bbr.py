"""BBR v1: Cardwell et al. 2016; the behaviour of Linux' tcp_bbr.c."""

from __future__ import annotations

from typing import Any

from data.netsim.cc import bbr_path
from data.netsim.cc.bbr_path import (
    aggregated,
    bandwidth,
    begin_epoch,
    forget_policer,
    policer_expired,
    take_bandwidth,
    watch_aggregation,
    watch_for_policer,
)
from data.netsim.jit import compiled
from data.netsim.state import FAR, LOSS, RECOVERY

SUMMARY = "BBR v1: paces at the estimated bottleneck rate, two BDP in flight (tcp_bbr.c)"
PACING = 2
OWN_WINDOW = True
RATE_SAMPLE = True
FIELDS = {
    "bb_mode": "i8", "bb_next": "i8", "bb_full": "f8", "bb_full_n": "i8", "bb_full_on": "i8",
    "bb_min": "i8", "bb_min_t": "i8", "bb_cycle": "i8", "bb_cycle_t": "i8",
    "bb_probe_end": "i8", "bb_probe_round": "i8", "bb_prior": "i8", "bb_state": "i8",
    "bb_conserve": "i8", "bb_idle": "i8", **bbr_path.FIELDS,
}  # fmt: skip
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)
_HIGH = 739.0 / 256.0
_DRAIN = 88.0 / 256.0
_MARGIN = 0.99
"""BBR paces 1 % below its estimate, so that queues don't stand."""
_MIN_RTT_LIFE = 10_000_000_000
_PROBE_TIME = 200_000_000
_LEAST = 4
_INITIAL = 10
_SLOW = 150_000.0
"""Bytes/s below which segments are sent one by one."""
_BURST_MAX = 45


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Startup at high gain from the handshake's RTT."""
    s.bb_mode = STARTUP
    s.bb_min = s.srtt
    s.bb_min_t = now
    s.bb_next = 0
    forget_policer(s)
    begin_epoch(s, now)
    s.pacing_rate = _rate(s, s.cwnd * 1e9 / s.srtt, _HIGH)
    _set_burst(s)


@compiled
def restart(s: Any, now: int) -> None:
    """Sending begins again with nothing in flight: not to be taken for a burst of ACKs."""
    if s.app_limited == 0:
        return
    s.bb_idle = 1
    begin_epoch(s, now)
    if s.bb_mode == PROBE_BW:
        _set_pacing(s, 1.0)
    elif s.bb_mode == PROBE_RTT:
        _end_probe_rtt(s, now)


@compiled
def _flight(s: Any) -> int:
    return int(s.snd_nxt - s.snd_una - s.sacked_out - s.lost_out + s.retrans_out)


@compiled
def _rate(s: Any, bw: float, gain: float) -> float:
    """Bytes/s on the wire: as the kernel, segments of ``mss`` though they carry ``payload``."""
    return float(bw * gain * _MARGIN * s.wire * s.mss / s.payload)


@compiled
def _set_burst(s: Any) -> None:
    """About a millisecond's worth at once, two segments at least unless the rate is low."""
    least = 1 if s.pacing_rate < _SLOW else 2
    s.pace_burst = min(_BURST_MAX, max(least, int(s.pacing_rate / 1024.0 / s.wire)))


@compiled
def _set_pacing(s: Any, gain: float) -> None:
    rate = _rate(s, bandwidth(s), gain)
    if s.bb_full_on != 0 or rate > s.pacing_rate:
        s.pacing_rate = rate
    _set_burst(s)


@compiled
def _bdp(s: Any, bw: float, gain: float) -> int:
    if s.bb_min >= FAR:
        return _INITIAL
    return int(bw * s.bb_min / 1e9 * gain) + 1


@compiled
def _with_budget(s: Any, n: int) -> int:
    """Room for bursts on their way through both hosts, and for gain cycling at small BDPs."""
    n = (n + 3 * s.pace_burst + 1) & ~1
    if s.bb_mode == PROBE_BW and s.bb_cycle == 0:
        n += 2
    return int(n)


@compiled
def _in_net(s: Any, flight: int, gain: float, now: int) -> int:
    """Segments in the network when pacing lets the next burst go (bbr_packets_in_net_at_edt)."""
    if gain > 1.0:
        flight += s.pace_burst
    return int(max(0, flight - int(bandwidth(s) * max(0, s.pace_next - now) / 1e9)))


@compiled
def _pacing_gain(s: Any) -> float:
    if s.bb_mode == STARTUP:
        return _HIGH
    if s.bb_mode == DRAIN:
        return _DRAIN
    if s.bb_mode == PROBE_RTT or s.bb_lt_use != 0:
        return 1.0
    if s.bb_cycle == 0:
        return 1.25
    if s.bb_cycle == 1:
        return 0.75
    return 1.0


@compiled
def _move_cycle(s: Any, flight: int, now: int) -> None:
    if s.bb_mode != PROBE_BW:
        return
    whole = s.delivered_t - s.bb_cycle_t > s.bb_min
    gain = _pacing_gain(s)
    done = whole
    if gain > 1.0:
        full = _in_net(s, flight, gain, now) >= _with_budget(s, _bdp(s, s.bb_bw0, gain))
        done = whole and (s.rs_losses > 0 or full)
    elif gain < 1.0:
        done = whole or _in_net(s, flight, gain, now) <= _with_budget(s, _bdp(s, s.bb_bw0, 1.0))
    if done:
        s.bb_cycle = (s.bb_cycle + 1) % 8
        s.bb_cycle_t = s.delivered_t


@compiled
def _enter_probe_bw(s: Any) -> None:
    s.bb_mode = PROBE_BW
    s.random = (1103515245 * s.random + 12345) % 2147483648
    # Any phase but the draining one.
    s.bb_cycle = (8 - (s.random >> 16) % 7) % 8
    s.bb_cycle_t = s.delivered_t


@compiled
def _check_full(s: Any, round_start: bool) -> None:
    if s.bb_full_on != 0 or not round_start or s.rs_app_limited != 0:
        return
    if s.bb_bw0 >= s.bb_full * 1.25:
        s.bb_full = s.bb_bw0
        s.bb_full_n = 0
        return
    s.bb_full_n += 1
    if s.bb_full_n >= 3:
        s.bb_full_on = 1


@compiled
def _probe_rtt(s: Any, round_start: bool, now: int) -> None:
    expired = now > s.bb_min_t + _MIN_RTT_LIFE
    if s.rs_rtt >= 0 and (s.rs_rtt <= s.bb_min or expired):
        s.bb_min = s.rs_rtt
        s.bb_min_t = now
    if expired and s.bb_idle == 0 and s.bb_mode != PROBE_RTT:
        s.bb_mode = PROBE_RTT
        _save(s)
        s.bb_probe_end = 0
    if s.bb_mode == PROBE_RTT:
        # Samples of this mode say nothing about the bandwidth.
        s.app_limited = max(1, s.delivered + _flight(s))
        if s.bb_probe_end != 0:
            if round_start:
                s.bb_probe_round = 1
            if s.bb_probe_round != 0:
                _end_probe_rtt(s, now)
        elif _flight(s) <= _LEAST:
            s.bb_probe_end = now + _PROBE_TIME
            s.bb_probe_round = 0
            s.bb_next = s.delivered
    if s.rs_delivered > 0:
        s.bb_idle = 0


@compiled
def _end_probe_rtt(s: Any, now: int) -> None:
    if s.bb_probe_end == 0 or now <= s.bb_probe_end:
        return
    s.bb_min_t = now
    s.cwnd = max(s.cwnd, s.bb_prior)
    if s.bb_full_on != 0:
        _enter_probe_bw(s)
    else:
        s.bb_mode = STARTUP


@compiled
def _save(s: Any) -> None:
    if s.bb_state < RECOVERY and s.bb_mode != PROBE_RTT:
        s.bb_prior = s.cwnd
    else:
        s.bb_prior = max(s.bb_prior, s.cwnd)


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Remember the window; a threshold has no meaning here."""
    _save(s)
    return int(s.ssthresh)


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """A timeout: bandwidth has to be found again."""
    if state == LOSS:
        s.bb_state = LOSS
        s.bb_full = 0.0
        if s.bb_lt_use == 0:
            watch_for_policer(s, True, 1, 0)


@compiled
def _set_window(s: Any, acked: int, flight: int) -> None:
    state = s.ca_state
    window = s.cwnd
    if s.rs_losses > 0:
        window = max(window - s.rs_losses, 1)
    if state == RECOVERY and s.bb_state != RECOVERY:
        # Conservation of packets in the first round of recovery.
        s.bb_conserve = 1
        s.bb_next = s.delivered
        window = flight + acked
    elif s.bb_state >= RECOVERY and state < RECOVERY:
        window = max(window, s.bb_prior)
        s.bb_conserve = 0
    s.bb_state = state
    if s.bb_conserve != 0:
        s.cwnd = max(window, flight + acked)
        return
    gain = 2.0 if s.bb_mode == PROBE_BW else _HIGH
    if s.bb_mode == PROBE_RTT:
        gain = 1.0
    target = _bdp(s, bandwidth(s), gain)
    if s.bb_full_on != 0:
        target += aggregated(s)
    target = _with_budget(s, target)
    if s.bb_full_on != 0:
        window = min(window + acked, target)
    elif window < target or s.delivered < _INITIAL:
        window += acked
    s.cwnd = max(window, _LEAST)


@compiled
def _take_sample(s: Any, acked: int, now: int) -> bool:
    """Rounds, bandwidth, policer and aggregation from this ACK; whether a round began."""
    round_start = False
    if s.rs_delivered < 0 or s.rs_interval <= 0:
        return round_start
    if s.rs_prior >= s.bb_next:
        s.bb_next = s.delivered
        s.bb_round += 1
        round_start = True
        s.bb_conserve = 0
    if s.bb_lt_use == 0:
        watch_for_policer(s, round_start, s.rs_losses, s.rs_app_limited)
    elif s.bb_mode == PROBE_BW and policer_expired(s, round_start):
        forget_policer(s)
        _enter_probe_bw(s)
    bw = s.rs_delivered * 1e9 / s.rs_interval
    if s.rs_app_limited == 0 or bw >= s.bb_bw0:
        take_bandwidth(s, bw)
    if acked > 0:
        watch_aggregation(s, round_start, acked, now)
    return round_start


@compiled
def control(subs: Any, c: Any, s: Any, acked: int, flight: int, now: int) -> bool:
    """Update the model from one ACK, then pace and window (bbr_main)."""
    round_start = _take_sample(s, acked, now)
    now_flight = _flight(s)
    _move_cycle(s, flight, now)
    _check_full(s, round_start)
    if s.bb_mode == STARTUP and s.bb_full_on != 0:
        s.bb_mode = DRAIN
    if s.bb_mode == DRAIN:
        pipe = _with_budget(s, _bdp(s, s.bb_bw0, 1.0))
        if _in_net(s, now_flight, _DRAIN, now) <= pipe:
            _enter_probe_bw(s)
    _probe_rtt(s, round_start, now)
    _set_pacing(s, _pacing_gain(s))
    if acked > 0:
        _set_window(s, acked, now_flight)
    if s.bb_mode == PROBE_RTT:
        s.cwnd = min(s.cwnd, _LEAST)
    return True
