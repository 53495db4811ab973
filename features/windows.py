"""A connection's events are cut into windows, the samples of shared-bottleneck detection.

The first window starts when the later of the two subflows enters Recovery or Loss for the first
time: from then on both have met a limit (smartsbd.txt section 3.2). Further windows follow
without gap or overlap to the end of the shorter subflow.

Everything a window is made of is known to a kernel at the window's end: length and grid come
from the smallest RTTs seen before the window starts, nothing from later ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.schema import CONGESTED_STATES
from features.arrays import Float, Int
from features.params import SbdParams

Events = Mapping[int, Mapping[str, tuple[Int, Int]]]
"""subflow -> variable -> (time_us, value), both int64 array [n], times ascending."""


@dataclass(frozen=True)
class Series:
    """Samples of a variable: ``time_us`` int64 array [n] ascending, ``value`` float64 array [n]."""

    time_us: Int
    value: Float

    def between(self, start_us: float, end_us: float, before: int = 0) -> Series:
        """Samples in [start, end), and up to ``before`` samples that precede them."""
        first, last = np.searchsorted(self.time_us, (start_us, end_us))
        cut = slice(max(0, first - before), last)
        return Series(self.time_us[cut], self.value[cut])


@dataclass(frozen=True)
class Trace:
    """What is known of one subflow, whole connection or one window.

    Attributes
    ----------
    rtt : Series
        Round-trip times in us, at ACK times.
    throughput : Series
        EWMA of the achieved throughput in bit/s.
    congested : Series
        1 from the moment Recovery or Loss is entered, 0 from the moment it is left.
    retransmit_us : int64 array [k]
        Times of retransmissions.
    rtt_kind : str
        ``raw`` or ``srtt``.
    """

    rtt: Series
    throughput: Series
    congested: Series
    retransmit_us: Int
    rtt_kind: str


@dataclass(frozen=True)
class Span:
    """When a window is and how it is sampled; ``first_us`` is its pair's first window's start."""

    index: int
    start_us: int
    end_us: int
    step_us: float
    first_us: int


@dataclass(frozen=True)
class Window:
    """One sample: a stretch of one connection, WiFi subflow first everywhere.

    Attributes
    ----------
    index : int
        0, 1, 2 ... within the connection.
    start_us, end_us : int
        In the log's clock, end excluded.
    step_us : float
        Grid interval: the smaller min RTT.
    min_rtt_us : (float, float)
        Smallest RTT of each subflow before the window.
    rtt_us, congested, throughput_bps : float64 array [2, points]
        Series on the grid.
    history_rtt_us : float64 array [2, more points]
        RTT on the same grid, of this window and up to ``history_windows`` before it; the last
        points are ``rtt_us``.
    traces : (Trace, Trace)
        Samples within the window (``congested``: with the state at its start).
    """

    index: int
    start_us: int
    end_us: int
    step_us: float
    min_rtt_us: tuple[float, float]
    rtt_us: Float
    congested: Float
    throughput_bps: Float
    history_rtt_us: Float
    traces: tuple[Trace, Trace]

    @property
    def rtt_kind(self) -> str:
        """``raw`` or ``srtt`` when both subflows agree, otherwise ``mixed``."""
        first, second = (trace.rtt_kind for trace in self.traces)
        return first if first == second else "mixed"


def trace(variables: Mapping[str, tuple[Int, Int]], params: SbdParams) -> Trace:
    """Take the series that features need from one subflow's events.

    Raw RTTs if the log has them, smoothed ones otherwise; throughput from ACK numbers, from
    the log's own rate if it has none.
    """
    from features.resample import smoothed_throughput

    kind = "raw" if _size(variables, "rtt_us") else "srtt"
    times, values = _get(variables, "rtt_us" if kind == "raw" else "srtt_us")
    known = values > 0
    rtt = Series(times[known], values[known].astype(np.float64))
    if _size(variables, "ack"):
        throughput = Series(*smoothed_throughput(*_get(variables, "ack"), params.ewma_weight))
    else:
        rate_time_us, rate_bps = _get(variables, "throughput_bps")
        throughput = Series(rate_time_us, rate_bps.astype(np.float64))
    state_time_us, state = _get(variables, "ca_state")
    congested = Series(state_time_us, np.isin(state, CONGESTED_STATES).astype(np.float64))
    return Trace(rtt, throughput, congested, _get(variables, "retransmit")[0], kind)


def choose_pair(events: Events) -> tuple[int, int] | None:
    """Two subflows with the most events, the one place that decides which pair is looked at."""
    counts = {
        subflow: sum(times.size for times, _ in variables.values())
        for subflow, variables in events.items()
    }
    ranked = sorted(counts, key=lambda subflow: (-counts[subflow], subflow))
    return (ranked[0], ranked[1]) if len(ranked) >= 2 else None


def wifi_subflow(row: Mapping[str, Any]) -> int | None:
    """Subflow whose source port is the row's ``wifi_sport``; None if there is none."""
    port = str(row.get("wifi_sport") or "").strip()
    if not port:
        return None
    for subflow in row.get("subflows") or ():
        if str(subflow["sport"]) == port:
            return int(subflow["subflow"])
    return None


def windows(
    row: Mapping[str, Any], events: Events, params: SbdParams
) -> tuple[list[Window], str | None]:
    """All windows of a connection.

    Parameters
    ----------
    row : mapping
        The connection's row; ``subflows`` and ``wifi_sport`` are used if present.
    events : mapping
        Its events.
    params : SbdParams
        Window length and grid.

    Returns
    -------
    windows : list of Window
        In time order; indices of windows in which a subflow was idle are left out.
    reason : str or None
        Why there is no window at all.
    """
    pair = choose_pair(events)
    if pair is None:
        return [], "fewer than two subflows"
    first, second = (trace(events[subflow], params) for subflow in pair)
    reason = unusable((first, second))
    if reason:
        return [], reason
    entries = [first_congestion_us(t) for t in (first, second)]
    if any(entry is None for entry in entries):
        return [], "never congested on both subflows"
    start_us = max(entry for entry in entries if entry is not None)
    smallest = [min_before(t.rtt, start_us) for t in (first, second)]
    if any(rtt is None for rtt in smallest):
        return [], "no RTT before congestion"
    wifi = wifi_subflow(row)
    if wifi in pair:
        swap = wifi == pair[1]
    else:
        swap = (smallest[1] or 0) < (smallest[0] or 0)
    ordered = (second, first) if swap else (first, second)
    return _cut(ordered, start_us, params)


def _cut(
    traces: tuple[Trace, Trace], start_us: int, params: SbdParams
) -> tuple[list[Window], str | None]:
    first_us = start_us
    last_us = min(int(t.rtt.time_us[-1]) for t in traces)
    found: list[Window] = []
    index = 0
    while True:
        smallest = [min_before(t.rtt, start_us) or 1.0 for t in traces]
        length_us = max(params.window_factor * max(smallest), params.min_window_us)
        end_us = start_us + math.ceil(length_us)
        if end_us > last_us:
            break
        grid_us = max(min(smallest), length_us / params.max_points)
        span = Span(index, start_us, end_us, grid_us, first_us)
        window = between(traces, (smallest[0], smallest[1]), span, params)
        if window is not None:
            found.append(window)
        start_us, index = end_us, index + 1
    if found:
        return found, None
    return [], "too short for one window" if index == 0 else "a subflow idle in every window"


def between(
    traces: tuple[Trace, Trace], min_rtt_us: tuple[float, float], span: Span, params: SbdParams
) -> Window | None:
    """One window of two subflows; None if one of them was idle in it.

    Parameters
    ----------
    traces : (Trace, Trace)
        Traces of the whole connection, WiFi's first.
    min_rtt_us : (float, float)
        Their smallest RTTs before the window.
    span : Span
        When it is, and its grid.
    params : SbdParams
        ``min_samples`` and ``history_windows`` count.
    """
    from features.resample import step

    start_us, end_us, step_us = span.start_us, span.end_us, span.step_us
    points = math.ceil((end_us - start_us) / step_us)
    inside = tuple(_inside(t, start_us, end_us) for t in traces)
    if min(t.rtt.time_us.size for t in inside) < params.min_samples:
        return None
    grid = (start_us, step_us, points)
    back = min(params.history_windows * points, int((start_us - span.first_us) / step_us))
    long_grid = (start_us - back * step_us, step_us, back + points)
    rtt_us = _on_grid([t.rtt for t in traces], end_us, long_grid)
    return Window(
        index=span.index,
        start_us=start_us,
        end_us=end_us,
        step_us=step_us,
        min_rtt_us=min_rtt_us,
        rtt_us=rtt_us[:, back:],
        congested=np.stack([step(t.congested.time_us, t.congested.value, *grid) for t in inside]),
        throughput_bps=_on_grid([t.throughput for t in traces], end_us, grid),
        history_rtt_us=rtt_us,
        traces=(inside[0], inside[1]),
    )


def _on_grid(series: Sequence[Series], end_us: int, grid: tuple[float, float, int]) -> Float:
    """Both subflows on the grid; the last sample before the window counts, later ones don't."""
    from features.resample import linear

    cut = [s.between(grid[0], end_us, before=1) for s in series]
    return np.nan_to_num(np.stack([linear(s.time_us, s.value, *grid) for s in cut]))


def _inside(whole: Trace, start_us: int, end_us: int) -> Trace:
    first, last = np.searchsorted(whole.retransmit_us, (start_us, end_us))
    return Trace(
        rtt=whole.rtt.between(start_us, end_us),
        throughput=whole.throughput.between(start_us, end_us),
        congested=whole.congested.between(start_us, end_us, before=1),
        retransmit_us=whole.retransmit_us[first:last],
        rtt_kind=whole.rtt_kind,
    )


def unusable(traces: Sequence[Trace]) -> str | None:
    """Why these subflows can't be compared; None if they can."""
    if any(t.rtt.time_us.size == 0 for t in traces):
        return "no RTT on both subflows"
    if any(t.throughput.time_us.size == 0 for t in traces):
        return "no ACK numbers or throughput on both subflows"
    if all(t.congested.time_us.size == 0 for t in traces):
        return "no congestion state"
    return None


def first_congestion_us(t: Trace) -> int | None:
    """When Recovery or Loss is entered for the first time; None if never."""
    times = t.congested.time_us[t.congested.value > 0]
    return int(times[0]) if times.size else None


def min_before(rtt: Series, time_us: int) -> float | None:
    """Smallest RTT up to a time; None if there is none yet."""
    before = rtt.value[: np.searchsorted(rtt.time_us, time_us, side="right")]
    return float(before.min()) if before.size else None


def _size(variables: Mapping[str, tuple[Int, Int]], name: str) -> int:
    return variables[name][0].size if name in variables else 0


def _get(variables: Mapping[str, tuple[Int, Int]], name: str) -> tuple[Int, Int]:
    if name not in variables:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    times, values = variables[name]
    return np.asarray(times, np.int64), np.asarray(values, np.int64)
