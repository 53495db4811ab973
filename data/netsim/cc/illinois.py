"""Illinois: Liu, Basar and Srikant 2008; Linux' tcp_illinois.c."""

from __future__ import annotations

from typing import Any

from data.netsim.cc.reno import limited, slow_start
from data.netsim.jit import compiled
from data.netsim.state import FAR, LOSS

SUMMARY = "Illinois: growth and decrease set by the queueing delay (tcp_illinois.c)"
FIELDS = {
    "il_end": "i8", "il_base": "i8", "il_max": "i8", "il_sum": "i8", "il_count": "i8",
    "il_low": "i8", "il_above": "i8", "il_alpha": "f8", "il_beta": "f8",
}  # fmt: skip
_ALPHA_MIN, _ALPHA_MAX = 0.3, 10.0
_BETA_MIN, _BETA_MAX = 0.125, 0.5
_SMALL, _THETA = 15, 5


@compiled
def start(subs: Any, c: Any, s: Any, now: int) -> None:
    """Most aggressive until a queue is seen."""
    s.il_alpha = _ALPHA_MAX
    s.il_beta = 0.5
    s.il_base = FAR
    _new_round(s)


@compiled
def _new_round(s: Any) -> None:
    s.il_end = s.snd_nxt
    s.il_count = 0
    s.il_sum = 0


@compiled
def acked(subs: Any, c: Any, s: Any, acked: int, rtt: int, marks: int, now: int) -> None:
    """Base, largest and mean RTT."""
    if rtt < 0:
        return
    s.il_base = min(s.il_base, rtt)
    s.il_max = max(s.il_max, rtt)
    s.il_count += 1
    s.il_sum += rtt


@compiled
def _alpha(s: Any, delay: int, most: int) -> float:
    near = most // 100
    if delay <= near:
        if s.il_above == 0:
            return _ALPHA_MAX
        s.il_low += 1
        if s.il_low < _THETA:
            return float(s.il_alpha)
        s.il_low = 0
        s.il_above = 0
        return _ALPHA_MAX
    s.il_above = 1
    most -= near
    delay -= near
    return float(most * _ALPHA_MAX / (most + delay * (_ALPHA_MAX - _ALPHA_MIN) / _ALPHA_MIN))


@compiled
def _beta(delay: int, most: int) -> float:
    low = most // 10
    high = 8 * most // 10
    if delay <= low:
        return _BETA_MIN
    if delay >= high or high <= low:
        return _BETA_MAX
    return float(
        (_BETA_MIN * high - _BETA_MAX * low + (_BETA_MAX - _BETA_MIN) * delay) / (high - low)
    )


@compiled
def avoid(subs: Any, c: Any, s: Any, acked: int, now: int) -> None:
    """Grow by alpha per RTT; alpha and beta are renewed once a round."""
    if s.snd_una > s.il_end:
        if s.cwnd < _SMALL:
            s.il_alpha = 1.0
            s.il_beta = 0.5
        elif s.il_count > 0:
            delay = s.il_sum // s.il_count - s.il_base
            most = s.il_max - s.il_base
            s.il_alpha = _alpha(s, delay, most)
            s.il_beta = _beta(delay, most)
        _new_round(s)
    if not limited(s):
        return
    if s.cwnd < s.ssthresh:
        slow_start(s, acked)
        return
    s.cwnd_cnt += acked
    grown = int(s.cwnd_cnt * s.il_alpha)
    if grown >= s.cwnd:
        s.cwnd += grown // s.cwnd
        s.cwnd_cnt = 0


@compiled
def ssthresh(subs: Any, c: Any, s: Any, now: int) -> int:
    """The window less its share beta."""
    return int(max(2, int(s.cwnd - s.il_beta * s.cwnd)))


@compiled
def set_state(subs: Any, c: Any, s: Any, state: int, now: int) -> None:
    """A timeout makes it Reno for a round."""
    if state == LOSS:
        s.il_alpha = 1.0
        s.il_beta = 0.5
        s.il_low = 0
        s.il_above = 0
        _new_round(s)
