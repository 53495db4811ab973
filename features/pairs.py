"""Windows of connections with three and more subflows: one per pair, at common times.

The detection period T belongs to the connection (smartsbd.txt section 7: "at the end of each T,
find a partition"), so that its pairs have verdicts of one moment. A *member* of a window is a
subflow that had been in Recovery or Loss, and had an RTT, by the window's start. The first window
starts when the second subflow gets there; one that gets there later, or joins later, is a member
from the next window on. A window lasts 50 times the members' largest min RTT and is sampled at
their smallest. Of two subflows these are the windows of :mod:`features.windows`.

A subflow that isn't a member hasn't met a limit yet: there is no bottleneck to share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from features.params import SbdParams
from features.windows import (
    Events,
    Span,
    Trace,
    Window,
    between,
    choose_pair,
    first_congestion_us,
    min_before,
    trace,
    unusable,
    wifi_subflow,
    windows,
)


class PairWindow(NamedTuple):
    """A window of two subflows, ``subflows`` (a, b) with a < b."""

    subflows: tuple[int, int]
    window: Window


def pair_windows(
    row: Mapping[str, Any], events: Events, params: SbdParams
) -> tuple[list[PairWindow], str | None]:
    """All windows of all pairs of a connection.

    Parameters
    ----------
    row : mapping
        The connection's row, as :func:`features.windows.windows` takes it.
    events : mapping
        Its events, of any number of subflows.
    params : SbdParams
        Window length and grid.

    Returns
    -------
    windows : list of PairWindow
        By window, then by pair; equal indices are equal times. A pair is left out if one of
        the two wasn't a member or was idle.
    reason : str or None
        Why there is no window at all.
    """
    if len(events) <= 2:
        pair = choose_pair(events)
        found, reason = windows(row, events, params)
        if pair is None:
            return [], reason
        return [PairWindow((min(pair), max(pair)), window) for window in found], reason
    traces = {subflow: trace(events[subflow], params) for subflow in sorted(events)}
    usable = {s: t for s, t in traces.items() if unusable((t,)) is None}
    if len(usable) < 2:
        return [], unusable(list(traces.values())) or "fewer than two subflows"
    entries = {s: first_congestion_us(t) for s, t in usable.items()}
    congested = {s: entry for s, entry in entries.items() if entry is not None}
    if len(congested) < 2:
        return [], "never congested on two subflows"
    return _cut({s: usable[s] for s in congested}, congested, wifi_subflow(row), params)


def choose_subflows(events: Events, most: int) -> tuple[int, ...] | None:
    """Subflows that exported code has room for: those with the most events, by number.

    None if there are fewer than two. For ``most`` = 2 it is the pair of
    :func:`features.windows.choose_pair`.
    """
    if most == 2:
        return choose_pair(events)
    counts = {s: sum(t.size for t, _ in variables.values()) for s, variables in events.items()}
    ranked = sorted(counts, key=lambda subflow: (-counts[subflow], subflow))
    return tuple(sorted(ranked[:most])) if len(ranked) >= 2 else None


def _cut(
    traces: Mapping[int, Trace], entries: Mapping[int, int], wifi: int | None, params: SbdParams
) -> tuple[list[PairWindow], str | None]:
    start_us, index = sorted(entries.values())[1], 0
    last_us = sorted(int(t.rtt.time_us[-1]) for t in traces.values())[-2]
    joined: dict[int, tuple[int, float]] = {}
    found: list[PairWindow] = []
    while True:
        smallest = _members(traces, entries, start_us)
        if len(smallest) < 2:
            return [], "no RTT before congestion"
        for subflow, rtt_us in smallest.items():
            joined.setdefault(subflow, (start_us, rtt_us))
        length_us = max(params.window_factor * max(smallest.values()), params.min_window_us)
        end_us = start_us + math.ceil(length_us)
        if end_us > last_us:
            break
        step_us = max(min(smallest.values()), length_us / params.max_points)
        for a, b in combinations(smallest, 2):
            if min(traces[a].rtt.time_us[-1], traces[b].rtt.time_us[-1]) < end_us:
                continue
            first, second = _ordered((a, b), wifi, joined)
            span = Span(index, start_us, end_us, step_us, max(joined[a][0], joined[b][0]))
            rtts_us = (smallest[first], smallest[second])
            window = between((traces[first], traces[second]), rtts_us, span, params)
            if window is not None:
                found.append(PairWindow((a, b), window))
        start_us, index = end_us, index + 1
    if found:
        return found, None
    return [], "too short for one window" if index == 0 else "a subflow idle in every window"


def _members(
    traces: Mapping[int, Trace], entries: Mapping[int, int], start_us: int
) -> dict[int, float]:
    """Members of the window that starts then, and their smallest RTTs, by number."""
    found = {}
    for subflow in sorted(traces):
        rtt_us = min_before(traces[subflow].rtt, start_us)
        if entries[subflow] <= start_us and rtt_us is not None:
            found[subflow] = rtt_us
    return found


def _ordered(
    pair: Sequence[int], wifi: int | None, joined: Mapping[int, tuple[int, float]]
) -> tuple[int, int]:
    """WiFi first; if neither is, the one whose min RTT was smaller when it became a member."""
    a, b = pair
    swap = wifi == b if wifi in pair else joined[b][1] < joined[a][1]
    return (b, a) if swap else (a, b)
