"""BBR v1: Cardwell et al. 2016; Linux' tcp_bbr.c without its policer and aggregation parts."""

from __future__ import annotations

from typing import Any

from data.netsim.jit import kernel
from data.netsim.state import FAR, LOSS, RECOVERY

SUMMARY = "BBR v1: paces at the estimated bottleneck rate, two BDP in flight (tcp_bbr.c)"
PACING = 2
OWN_WINDOW = True
FIELDS = {
    "bb_mode": "i8", "bb_bw0": "f8", "bb_bw1": "f8", "bb_bw2": "f8", "bb_t0": "i8",
    "bb_t1": "i8", "bb_t2": "i8", "bb_round": "i8", "bb_next": "i8", "bb_full": "f8",
    "bb_full_n": "i8", "bb_full_on": "i8", "bb_min": "i8", "bb_min_t": "i8", "bb_cycle": "i8",
    "bb_cycle_t": "i8", "bb_probe_end": "i8", "bb_probe_round": "i8", "bb_prior": "i8",
    "bb_state": "i8", "bb_conserve": "i8", "bb_start": "i8",
}  # fmt: skip
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)
_HIGH = 2.885
_WINDOW = 10
"""Rounds over which the largest bandwidth is kept."""
_MIN_RTT_LIFE = 10_000_000_000
_PROBE_TIME = 200_000_000


@kernel
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Startup at high gain from the handshake's RTT."""
    s.bb_mode = STARTUP
    s.bb_min = s.srtt
    s.bb_min_t = now
    s.bb_next = 0
    s.pacing_rate = _HIGH * s.cwnd * s.wire * 1e9 / s.srtt


@kernel
def _flight(s: Any) -> int:
    return int(s.snd_nxt - s.snd_una - s.sacked_out - s.lost_out + s.retrans_out)


@kernel
def _take_bandwidth(s: Any, bw: float) -> None:
    """Windowed maximum with three candidates (lib/win_minmax.c)."""
    t = s.bb_round
    if bw >= s.bb_bw0 or t - s.bb_t2 > _WINDOW:
        s.bb_bw0 = bw
        s.bb_bw1 = bw
        s.bb_bw2 = bw
        s.bb_t0 = t
        s.bb_t1 = t
        s.bb_t2 = t
        return
    if bw >= s.bb_bw1:
        s.bb_bw1 = bw
        s.bb_bw2 = bw
        s.bb_t1 = t
        s.bb_t2 = t
    elif bw >= s.bb_bw2:
        s.bb_bw2 = bw
        s.bb_t2 = t
    age = t - s.bb_t0
    if age > _WINDOW:
        _shift(s)
        s.bb_bw2 = bw
        s.bb_t2 = t
        if t - s.bb_t0 > _WINDOW:
            _shift(s)
            s.bb_bw2 = bw
            s.bb_t2 = t
    elif s.bb_t1 == s.bb_t0 and age > _WINDOW // 4:
        s.bb_bw1 = bw
        s.bb_bw2 = bw
        s.bb_t1 = t
        s.bb_t2 = t
    elif s.bb_t2 == s.bb_t1 and age > _WINDOW // 2:
        s.bb_bw2 = bw
        s.bb_t2 = t


@kernel
def _shift(s: Any) -> None:
    s.bb_bw0 = s.bb_bw1
    s.bb_t0 = s.bb_t1
    s.bb_bw1 = s.bb_bw2
    s.bb_t1 = s.bb_t2


@kernel
def _in_pipe(s: Any, gain: float) -> int:
    """Segments in flight at a gain, with room for segmentation as in the kernel."""
    if s.bb_min >= FAR:
        return 10
    n = int(s.bb_bw0 * s.bb_min / 1e9 * gain) + 1
    n += 3 * max(1, s.pace_burst)
    n = (n + 1) & ~1
    if s.bb_mode == PROBE_BW and s.bb_cycle == 0:
        n += 2
    return int(n)


@kernel
def _pacing_gain(s: Any) -> float:
    if s.bb_mode == STARTUP:
        return _HIGH
    if s.bb_mode == DRAIN:
        return 1.0 / _HIGH
    if s.bb_mode == PROBE_RTT:
        return 1.0
    if s.bb_cycle == 0:
        return 1.25
    if s.bb_cycle == 1:
        return 0.75
    return 1.0


@kernel
def _move_cycle(s: Any, flight: int, now: int) -> None:
    if s.bb_mode != PROBE_BW:
        return
    whole = now - s.bb_cycle_t > s.bb_min
    gain = _pacing_gain(s)
    if gain > 1.0:
        done = whole and (s.rs_losses > 0 or flight >= _in_pipe(s, gain))
    elif gain < 1.0:
        done = whole or flight <= _in_pipe(s, 1.0)
    else:
        done = whole
    if done:
        s.bb_cycle = (s.bb_cycle + 1) % 8
        s.bb_cycle_t = now


@kernel
def _enter_probe_bw(s: Any, now: int) -> None:
    s.bb_mode = PROBE_BW
    s.random = (1103515245 * s.random + 12345) % 2147483648
    # Any phase but the draining one.
    s.bb_cycle = (9 - (s.random >> 16) % 7) % 8
    s.bb_cycle_t = now


@kernel
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


@kernel
def _probe_rtt(s: Any, round_start: bool, now: int) -> None:
    expired = now > s.bb_min_t + _MIN_RTT_LIFE
    if s.rs_rtt >= 0 and (s.rs_rtt <= s.bb_min or expired):
        s.bb_min = s.rs_rtt
        s.bb_min_t = now
    if expired and s.bb_mode != PROBE_RTT:
        s.bb_mode = PROBE_RTT
        _save(s)
        s.bb_probe_end = 0
    if s.bb_mode != PROBE_RTT:
        return
    s.app_limited = max(1, s.delivered + _flight(s))
    if s.bb_probe_end == 0:
        if _flight(s) <= 4:
            s.bb_probe_end = now + _PROBE_TIME
            s.bb_probe_round = 0
            s.bb_next = s.delivered
    else:
        if round_start:
            s.bb_probe_round = 1
        if s.bb_probe_round != 0 and now >= s.bb_probe_end:
            s.bb_min_t = now
            s.cwnd = max(s.cwnd, s.bb_prior)
            if s.bb_full_on != 0:
                _enter_probe_bw(s, now)
            else:
                s.bb_mode = STARTUP


@kernel
def _save(s: Any) -> None:
    if s.bb_state < RECOVERY and s.bb_mode != PROBE_RTT:
        s.bb_prior = s.cwnd
    else:
        s.bb_prior = max(s.bb_prior, s.cwnd)


@kernel
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Remember the window; a threshold has no meaning here."""
    _save(s)
    return int(s.ssthresh)


@kernel
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """A timeout: bandwidth has to be found again."""
    if state == LOSS:
        s.bb_state = LOSS
        s.bb_full = 0.0
        s.bb_start = 1


@kernel
def _set_window(s: Any, acked: int, flight: int) -> None:
    state = s.ca_state
    window = s.cwnd
    held = False
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
        window = max(window, flight + acked)
        held = True
    if not held and acked > 0:
        gain = 2.0 if s.bb_mode == PROBE_BW else _HIGH
        if s.bb_mode == PROBE_RTT:
            gain = 1.0
        target = _in_pipe(s, gain)
        if s.bb_full_on != 0:
            window = min(window + acked, target)
        elif window < target or s.delivered < 10:
            window += acked
        window = max(window, 4)
    s.cwnd = window
    if s.bb_mode == PROBE_RTT:
        s.cwnd = min(s.cwnd, 4)


@kernel
def control(subs: Any, c: Any, s: Any, acked: int, flight: int, now: int) -> bool:
    """Update the model from one ACK, then pace and window (bbr_main)."""
    round_start = s.bb_start != 0
    s.bb_start = 0
    if s.rs_delivered >= 0 and s.rs_interval > 0:
        if s.rs_prior >= s.bb_next:
            s.bb_next = s.delivered
            s.bb_round += 1
            round_start = True
            s.bb_conserve = 0
        bw = s.rs_delivered * 1e9 / s.rs_interval
        if s.rs_app_limited == 0 or bw >= s.bb_bw0:
            _take_bandwidth(s, bw)
    now_flight = _flight(s)
    _move_cycle(s, flight, now)
    _check_full(s, round_start)
    if s.bb_mode == STARTUP and s.bb_full_on != 0:
        s.bb_mode = DRAIN
    if s.bb_mode == DRAIN and now_flight <= _in_pipe(s, 1.0):
        _enter_probe_bw(s, now)
    _probe_rtt(s, round_start, now)
    rate = s.bb_bw0 * _pacing_gain(s) * s.wire * 0.99
    if s.bb_full_on != 0 or rate > s.pacing_rate:
        s.pacing_rate = rate
    s.pace_burst = min(44, max(1, int(s.pacing_rate / 1024.0 / s.wire)))
    _set_window(s, acked, now_flight)
    return True
