"""BBR's model of a path: bandwidth, a policer's rate, aggregation of ACKs (tcp_bbr.c).

Bandwidths are segments per second, times ns.
"""

from __future__ import annotations

from typing import Any

from data.netsim.jit import compiled

FIELDS = {
    # the largest bandwidth of ten rounds: three candidates and the rounds they are from
    "bb_bw0": "f8", "bb_bw1": "f8", "bb_bw2": "f8", "bb_t0": "i8", "bb_t1": "i8", "bb_t2": "i8",
    "bb_round": "i8",
    # long-term sampling: the policer's rate, whether it is in use, where the interval began
    "bb_lt_bw": "f8", "bb_lt_use": "i8", "bb_lt_on": "i8", "bb_lt_rounds": "i8",
    "bb_lt_delivered": "i8", "bb_lt_lost": "i8", "bb_lt_t": "i8",
    # segments acknowledged in excess of the bandwidth, largest of this and the last window
    "bb_extra0": "i8", "bb_extra1": "i8", "bb_extra_i": "i8", "bb_extra_rounds": "i8",
    "bb_epoch_t": "i8", "bb_epoch_acked": "i8",
}  # fmt: skip
_WINDOW = 10
"""Rounds over which the largest bandwidth is kept."""
_LT_ROUNDS = 4
"""The fewest rounds of a long-term interval; four times as many are too many."""
_LT_LOSS = 50.0 / 256.0
"""Lost per delivered segment from which a policer may be at work."""
_LT_RATIO = 1.0 / 8.0
_LT_DIFFERENCE = 500.0
"""Bytes/s by which two intervals may differ and still be consistent."""
_LT_LIFE = 48
"""Rounds for which a policer's rate is believed."""
_EXTRA_ROUNDS = 5
_EXTRA_NS = 100_000_000
"""The most that aggregation adds to the window, in time at the bandwidth."""
_EPOCH_MAX = 1 << 20


@compiled
def take_bandwidth(s: Any, bw: float) -> None:
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


@compiled
def _shift(s: Any) -> None:
    s.bb_bw0 = s.bb_bw1
    s.bb_t0 = s.bb_t1
    s.bb_bw1 = s.bb_bw2
    s.bb_t1 = s.bb_t2


@compiled
def bandwidth(s: Any) -> float:
    """The path's bandwidth: a policer's rate if one was found."""
    return float(s.bb_lt_bw if s.bb_lt_use != 0 else s.bb_bw0)


@compiled
def begin_interval(s: Any) -> None:
    """Begin a long-term interval here."""
    s.bb_lt_t = s.delivered_t
    s.bb_lt_delivered = s.delivered
    s.bb_lt_lost = s.lost
    s.bb_lt_rounds = 0


@compiled
def forget_policer(s: Any) -> None:
    """Neither believe in a policer nor look for one until the next loss."""
    s.bb_lt_bw = 0.0
    s.bb_lt_use = 0
    s.bb_lt_on = 0
    begin_interval(s)


@compiled
def watch_for_policer(s: Any, round_start: bool, losses: int, app_limited: int) -> None:
    """Long-term sampling: two lossy intervals of one rate are a policer (bbr_lt_bw_sampling)."""
    if s.bb_lt_on == 0:
        if losses == 0:
            return
        begin_interval(s)
        s.bb_lt_on = 1
    if app_limited != 0:
        forget_policer(s)
        return
    if round_start:
        s.bb_lt_rounds += 1
    if s.bb_lt_rounds < _LT_ROUNDS:
        return
    if s.bb_lt_rounds > 4 * _LT_ROUNDS:
        forget_policer(s)
        return
    delivered = s.delivered - s.bb_lt_delivered
    span = s.delivered_t - s.bb_lt_t
    if losses == 0 or delivered == 0 or s.lost - s.bb_lt_lost < _LT_LOSS * delivered:
        return
    if span < 1_000_000:
        return
    bw = delivered * 1e9 / span
    difference = abs(bw - s.bb_lt_bw)
    alike = difference <= _LT_RATIO * s.bb_lt_bw or difference * s.payload <= _LT_DIFFERENCE
    if s.bb_lt_bw > 0.0 and alike:
        s.bb_lt_bw = (bw + s.bb_lt_bw) / 2.0
        s.bb_lt_use = 1
        s.bb_lt_rounds = 0
        return
    s.bb_lt_bw = bw
    begin_interval(s)


@compiled
def policer_expired(s: Any, round_start: bool) -> bool:
    """Whether the policer's rate in use has had its time; counts rounds."""
    if round_start:
        s.bb_lt_rounds += 1
    return bool(s.bb_lt_rounds >= _LT_LIFE)


@compiled
def begin_epoch(s: Any, now: int) -> None:
    """Expect acknowledgements at the bandwidth from here on."""
    s.bb_epoch_t = now
    s.bb_epoch_acked = 0


@compiled
def watch_aggregation(s: Any, round_start: bool, acked: int, now: int) -> None:
    """Largest excess of what was acknowledged over the bandwidth (bbr_update_ack_aggregation)."""
    if round_start:
        s.bb_extra_rounds += 1
        if s.bb_extra_rounds >= _EXTRA_ROUNDS:
            s.bb_extra_rounds = 0
            s.bb_extra_i = 1 - s.bb_extra_i
            if s.bb_extra_i != 0:
                s.bb_extra1 = 0
            else:
                s.bb_extra0 = 0
    expected = int(bandwidth(s) * (now - s.bb_epoch_t) / 1e9)
    if s.bb_epoch_acked <= expected or s.bb_epoch_acked + acked >= _EPOCH_MAX:
        begin_epoch(s, now)
        expected = 0
    s.bb_epoch_acked += acked
    extra = min(s.bb_epoch_acked - expected, s.cwnd)
    if s.bb_extra_i != 0:
        s.bb_extra1 = max(s.bb_extra1, extra)
    else:
        s.bb_extra0 = max(s.bb_extra0, extra)


@compiled
def aggregated(s: Any) -> int:
    """Segments that the window is raised by, so that silences between ACKs are bridged."""
    most = int(bandwidth(s) * _EXTRA_NS / 1e9)
    return int(min(max(s.bb_extra0, s.bb_extra1), most))
