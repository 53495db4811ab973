"""CUBIC: RFC 9438 with the constants of Linux' tcp_cubic.c, and its HyStart.

C = 0.4, beta = 717/1024, fast convergence, TCP friendliness; HyStart by ACK train and delay
increase.
"""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import additive, past_slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR, LOSS

SUMMARY = "CUBIC with HyStart, TCP friendliness and fast convergence (RFC 9438, tcp_cubic.c)"
FIELDS = {
    "cu_last_max": "f8",
    "cu_origin": "f8",
    "cu_k": "f8",
    "cu_epoch": "i8",
    "cu_min_delay": "i8",
    "cu_acked": "f8",
    "cu_tcp": "f8",
    "hs_round": "i8",
    "hs_end": "i8",
    "hs_last": "i8",
    "hs_rtt": "i8",
    "hs_count": "i8",
    "hs_found": "i8",
}

_C = 0.4
_BETA = 717.0 / 1024.0
_FRIENDLY = 8.0 * (1024.0 + 717.0) / (3.0 * (1024.0 - 717.0))
_LOW_WINDOW = 16
_ACK_GAP = 2_000_000
_MIN_SAMPLES = 8


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Forget everything; begin the first round of HyStart."""
    _reset(s)
    _new_round(s, now)


@compiled
def restart(s: Any, now: int) -> None:
    """Leave time without anything to send out of the curve."""
    if s.cu_epoch >= 0 and s.last_sent >= 0:
        s.cu_epoch = min(now, s.cu_epoch + now - s.last_sent)


@compiled
def _reset(s: Any) -> None:
    s.cu_last_max = 0.0
    s.cu_origin = 0.0
    s.cu_k = 0.0
    s.cu_epoch = -1
    s.cu_min_delay = FAR
    s.cu_acked = 0.0
    s.cu_tcp = 0.0
    s.hs_found = 0


@compiled
def _new_round(s: Any, now: int) -> None:
    s.hs_round = now
    s.hs_last = now
    s.hs_end = s.snd_nxt
    s.hs_rtt = FAR
    s.hs_count = 0


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """Multiply the window by beta; remember where it was."""
    s.cu_epoch = -1
    if s.cwnd < s.cu_last_max:
        s.cu_last_max = s.cwnd * (1.0 + _BETA) / 2.0
    else:
        s.cu_last_max = float(s.cwnd)
    return max(int(s.cwnd * _BETA), 2)


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """A timeout starts everything afresh."""
    if state == LOSS:
        _reset(s)
        _new_round(s, now)


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Slow start, then the cubic curve."""
    acked = past_slow_start(s, acked)
    if acked == 0:
        return
    additive(s, _per_segment(s, acked, now), acked)


@compiled
def _per_segment(s: Any, acked: int, now: int) -> int:
    """Segments to be acknowledged for one segment of growth."""
    s.cu_acked += acked
    if s.cu_epoch < 0:
        s.cu_epoch = now
        s.cu_acked = float(acked)
        s.cu_tcp = float(s.cwnd)
        if s.cu_last_max <= s.cwnd:
            s.cu_k = 0.0
            s.cu_origin = float(s.cwnd)
        else:
            s.cu_k = ((s.cu_last_max - s.cwnd) / _C) ** (1.0 / 3.0)
            s.cu_origin = s.cu_last_max
    t = (now - s.cu_epoch + min(s.cu_min_delay, 1 << 40)) / 1e9 - s.cu_k
    target = s.cu_origin + _C * t * t * t
    if target > s.cwnd:
        count = s.cwnd / (target - s.cwnd)
    else:
        count = 100.0 * s.cwnd
    if s.cu_last_max == 0.0:
        count = min(count, 20.0)
    # What Reno with CUBIC's decrease would have reached.
    delta = s.cwnd * _FRIENDLY / 8.0
    if s.cu_acked > delta:
        steps = int(s.cu_acked / delta)
        s.cu_acked -= steps * delta
        s.cu_tcp += steps
    if s.cu_tcp > s.cwnd:
        count = min(count, s.cwnd / (s.cu_tcp - s.cwnd))
    return max(int(count), 2)


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Track the smallest RTT and look for the end of slow start."""
    if rtt < 0:
        return
    if s.cu_epoch >= 0 and now - s.cu_epoch < 1_000_000_000:
        return
    s.cu_min_delay = min(s.cu_min_delay, rtt)
    if s.hs_found == 0 and s.cwnd < s.ssthresh:
        _hystart(s, rtt, now)


@compiled
def _hystart(s: Any, rtt: int, now: int) -> None:
    # Rounds are followed from the first on, so that each begins with a train of ACKs.
    if s.snd_una > s.hs_end:
        _new_round(s, now)
    if s.cwnd < _LOW_WINDOW:
        return
    if now - s.hs_last <= _ACK_GAP:
        s.hs_last = now
        threshold = s.cu_min_delay
        if s.pacing == 0:
            threshold = threshold // 2
        if now - s.hs_round > threshold:
            s.hs_found = 1
            s.ssthresh = s.cwnd
            return
    s.hs_rtt = min(s.hs_rtt, rtt)
    if s.hs_count < _MIN_SAMPLES:
        s.hs_count += 1
    elif s.hs_rtt > s.cu_min_delay + max(4_000_000, min(16_000_000, s.cu_min_delay // 8)):
        s.hs_found = 1
        s.ssthresh = s.cwnd
