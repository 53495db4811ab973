"""Dynamic Window Coupling: Hassayoun, Iyengar, Ros, IEEE ICNP 2011 (the paper's [2]).

A loss on one subflow starts a grouping. Another subflow joins its set if it has lost too within
the interval, or if its smoothed RTT stands in the upper part of its recent range,
``srtt > max - BETA * (max - min)``: the queue that overflowed is then likely to be its own. A
subflow whose losses find no such companion stands alone. Between losses the sets stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.sbd.rules.pair import Pair, Subflow, time_shares

BETA = 0.3
"""Fraction of the RTT range that counts as raised delay."""
HISTORY_US = 5_000_000
"""Extremes of the RTT older than this are forgotten."""

ALONE, TOGETHER = 0, 1


def raised(flow: Subflow, time_us: int) -> bool:
    """Whether the smoothed RTT stands in the upper BETA of its range over HISTORY_US."""
    stop = int(np.searchsorted(flow.time_us, time_us, side="right"))
    start = int(np.searchsorted(flow.time_us, time_us - HISTORY_US, side="left"))
    if stop - start < 2:
        return False
    high = flow.srtt_us[start:stop].max()
    # The lower end is the least raw sample: the smoothed one never gets down to the bare path.
    low = flow.rtt_us[start:stop].min()
    return bool(high > low and flow.srtt_us[stop - 1] > high - BETA * (high - low))


def groups(pair: Pair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times (us) of the groupings and the state from then on: 1 together, 0 alone."""
    times = np.concatenate([pair[0].loss_us, pair[1].loss_us])
    flow = np.repeat([0, 1], [pair[0].loss_us.size, pair[1].loss_us.size])
    order = np.argsort(times, kind="stable")
    state = np.zeros(times.size, dtype=np.int64)
    for i, j in enumerate(order):
        time, other = int(times[j]), pair[1 - int(flow[j])]
        spans = [one.smoothed_at(time) for one in pair]
        interval = int(max((s for s in spans if s == s), default=0))
        together = other.lost_between(time - interval, time) or raised(other, time)
        state[i] = TOGETHER if together else ALONE
    return times[order], state


def judge(pair: Pair, windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of each window's time in one set, and in different sets; see the package's text."""
    change, state = groups(pair)
    return time_shares(change, state, windows, (TOGETHER, ALONE))
