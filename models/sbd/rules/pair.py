"""Rule-based schemes judge by this view of a connection: RTT samples and losses of two subflows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from data.schema import CONGESTED_STATES
from features.windows import choose_pair

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Series = tuple[NDArray[np.int64], NDArray[np.int64]]

SRTT_GAIN = 1 / 8
"""Weight of a new sample in the smoothed RTT (RFC 6298)."""


@dataclass(frozen=True)
class Subflow:
    """One subflow.

    Attributes
    ----------
    time_us, rtt_us : int64 array [n]
        RTT samples in order of time.
    srtt_us : float64 array [n]
        Smoothed RTT at each sample.
    loss_us : int64 array [m]
        Times at which the sender entered Recovery or Loss.
    retransmit_us : int64 array [r]
        Times of retransmissions.
    """

    time_us: Ints
    rtt_us: Ints
    srtt_us: Floats
    loss_us: Ints
    retransmit_us: Ints

    def smoothed_at(self, time_us: int) -> float:
        """Smoothed RTT in force at a time (us); NaN before the first sample."""
        i = int(np.searchsorted(self.time_us, time_us, side="right")) - 1
        return float(self.srtt_us[i]) if i >= 0 else float("nan")

    def lost_between(self, start_us: int, end_us: int) -> bool:
        """Whether a loss lies in [start, end]."""
        i = int(np.searchsorted(self.loss_us, start_us, side="left"))
        return i < self.loss_us.size and int(self.loss_us[i]) <= end_us


Pair = tuple[Subflow, Subflow]


def smooth(rtt_us: Ints) -> Floats:
    """Exponentially smoothed RTT with TCP's gain of 1/8, started at the first sample."""
    if rtt_us.size == 0:
        return np.empty(0)
    smoothed: Floats = _smooth(rtt_us.astype(np.float64), SRTT_GAIN)
    return smoothed


@numba.njit(cache=True)
def _smooth(rtt, gain):  # type: ignore[no-untyped-def]
    smoothed = np.empty_like(rtt)
    last = rtt[0]
    for i in range(rtt.size):
        last = gain * rtt[i] + (1 - gain) * last
        smoothed[i] = last
    return smoothed


def subflow(variables: Mapping[str, Series]) -> Subflow:
    """Gather one subflow from its event series (variable -> (time_us, value))."""
    empty = (np.empty(0, np.int64), np.empty(0, np.int64))
    time, rtt = variables.get("rtt_us", empty)
    if time.size == 0:
        time, rtt = variables.get("srtt_us", empty)
    resent = variables.get("retransmit", empty)[0]
    when, state = variables.get("ca_state", empty)
    # Logs without congestion states: every retransmission is a sign of loss.
    loss = when[np.isin(state, CONGESTED_STATES)] if when.size else resent
    known = rtt > 0
    rtt_us = np.asarray(rtt[known], np.int64)
    return Subflow(
        np.asarray(time[known], np.int64),
        rtt_us,
        smooth(rtt_us),
        np.asarray(loss, np.int64),
        np.asarray(resent, np.int64),
    )


def pair(events: Mapping[int, Mapping[str, Series]]) -> Pair | None:
    """The two subflows that the features look at; ``None`` if there aren't two with RTTs."""
    chosen = choose_pair(events)
    if chosen is None:
        return None
    one, two = (subflow(events[number]) for number in chosen)
    return (one, two) if one.time_us.size and two.time_us.size else None


def time_shares(change_us: Ints, state: Ints, windows: Ints, values: tuple[int, ...]) -> Floats:
    """Share of each window in which a step function has each of some values.

    Parameters
    ----------
    change_us, state : int64 array [m]
        Times of change in order, and the state from then on; before the first it is 0.
    windows : int64 array [n, 2]
        Start and end (us).
    values : tuple of int
        States asked for.

    Returns
    -------
    float64 array [n, len(values)]
    """
    out = np.zeros((len(windows), len(values)))
    for i, (start, end) in enumerate(windows):
        first, stop = np.searchsorted(change_us, [start, end], side="right")
        edges = np.concatenate([[start], change_us[first:stop], [end]])
        before = state[first - 1] if first else 0
        held = np.concatenate([[before], state[first:stop]])
        spans = np.diff(edges)
        for j, value in enumerate(values):
            out[i, j] = spans[held == value].sum() / max(int(end - start), 1)
    return out
