"""Observations of TCCO's agent: tcco.txt section III.C.2, per subflow and decision interval.

RTT and window come from what a kernel logs with each ACK. Throughput is that of the data known to
have been delivered, which a client in the kernel reads (``delivered_bytes``); logs without it have
``ack``, which stands still while a segment is missing and then jumps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from data.netsim.jit import compiled, entry
from data.netsim.seen import CODES
from data.strict import Strict
from features.intervals import Batch, Float, Watched, bounds, growth, last, mean
from features.spec import Feature

_SOURCE = "tcco.txt section III.C.2"
FEATURES = (
    Feature("throughput_bps", "bit/s", 0.0, 1e10, 1, _SOURCE, "delivered in the interval"),
    Feature("rtt_us", "us", 0.0, 1e7, 1, _SOURCE, "mean RTT of the interval's ACKs"),
    Feature("snd_cwnd", "segments", 0.0, 65535.0, 1, _SOURCE, "window at the interval's end"),
    Feature("bottleneck_bps", "bit/s", 0.0, 1e10, 1, _SOURCE, "peak of the recent throughput"),
    Feature("base_rtt_us", "us", 0.0, 1e7, 1, _SOURCE, "least recent RTT"),
    Feature("expflag", "", 0.0, 1.0, 1, _SOURCE, "1: the window hasn't grown for some intervals"),
)
THROUGHPUT, RTT, CWND, BOTTLENECK, BASE_RTT, EXPFLAG = range(len(FEATURES))
HALF = (1e8, 2e4, 100.0, 1e8, 2e4, 0.0)
"""What `features.intervals.scaled` makes 0.5 (ours)."""
BOUNDS = bounds(FEATURES, HALF)
SOURCES = ("features/intervals.py",)
"""What is compiled into this file's entry points besides the simulator."""


class TccoObservation(Strict):
    """How an observation is made."""

    interval_us: int = Field(20_000, gt=0)
    """Time between decisions (section II.C: 20 ms)."""
    lifetime_us: int = Field(10_000_000, gt=0)
    """How long estimates of bottleneck and base RTT live; the paper says "finite" (ours)."""
    peak_intervals: int = Field(5, ge=1)
    """Intervals over which a delivery rate is taken whose peak is the bottleneck (ours)."""
    explore_after: int = Field(6, ge=1)
    """Intervals without growth of the window that raise the expflag (section III.C.2)."""


class SubflowObserver:
    """One subflow's observations, from batches of its events."""

    def __init__(self, params: TccoObservation) -> None:
        self._settings = settings(params)
        self._memory = memory(params)
        self._watched = Watched()

    def update(self, batch: Batch) -> Float:
        """One interval.

        Returns
        -------
        float64 array [6]
            `FEATURES` in their order and units.
        """
        self._watched.take(batch)
        values = np.empty(len(FEATURES))
        _observe(self._watched.seen, self._memory, self._settings, values)
        return values


SPAN = 2
"""Place in `settings` of the intervals that a rate is a mean of."""


def settings(params: TccoObservation) -> NDArray[np.int64]:
    """What `observe` needs to know; int64 array [4]."""
    life = max(1, params.lifetime_us // params.interval_us)
    return np.array([params.interval_us, life, params.peak_intervals, params.explore_after])


def memory(params: TccoObservation) -> Float:
    """What `observe` remembers of a subflow, before its first interval; float64 array."""
    _, life, peak_intervals, _ = settings(params).tolist()
    result = np.zeros(_HEAD + peak_intervals + 2 * life)
    result[_HEAD + peak_intervals + life :] = result[_LEAST] = np.inf
    return result


# Places in the memory: counts, last values and what is largest and least of all that live; then
# rates of the last intervals, then each interval's peak and least RTT as long as they live.
_COUNT, _BASE, _STILL, _ACKED, _DELIVERED, _KNOWS, _RTT, _WINDOW, _PEAK, _LEAST, _HEAD = range(11)
_S_ACK, _S_DELIVERED = CODES["ack"], CODES["delivered_bytes"]
_S_RTT, _S_WINDOW = CODES["rtt_us"], CODES["snd_cwnd"]


@compiled
def observe(seen: Any, first: int, memory: Any, settings: Any, values: Any) -> None:
    """One interval of one subflow.

    Parameters
    ----------
    seen : SEEN array
        What the interval's samples come to; those of this subflow from ``first`` on.
    first : int
    memory : float64 array
        From `memory`; changed.
    settings : int64 array [4]
        From `settings`.
    values : float64 array [6]
        `FEATURES` in their order and units are written there.
    """
    interval_us, life, span, explore_after = settings[0], settings[1], settings[2], settings[3]
    count = int(memory[_COUNT])
    recent, peaks, lows = _HEAD, _HEAD + span, _HEAD + span + life
    if seen[first + _S_DELIVERED].n > 0:
        memory[_KNOWS] = 1.0
    acked = growth(seen[first + _S_ACK], memory, _ACKED)
    delivered = growth(seen[first + _S_DELIVERED], memory, _DELIVERED)
    rate = (delivered if memory[_KNOWS] > 0.0 else acked) * 8e6 / interval_us
    memory[recent + count % span] = rate
    total = 0.0
    for i in range(span):
        total += memory[recent + i]
    # ACKs come in bursts: a single interval's rate would be a peak of the noise.
    now = total / min(count + 1, span)
    rtt = seen[first + _S_RTT]
    low = float(rtt.least) if rtt.n > 0 else np.inf
    old, old_low = memory[peaks + count % life], memory[lows + count % life]
    memory[peaks + count % life], memory[lows + count % life] = now, low
    memory[_COUNT] = count + 1
    # All that live are looked through only when the largest or the least of them has just died.
    peak, least = max(memory[_PEAK], now), min(memory[_LEAST], low)
    if old >= peak > now:
        peak = memory[peaks : peaks + life].max()
    if old_low <= least < low:
        least = memory[lows : lows + life].min()
    memory[_PEAK], memory[_LEAST] = peak, least
    if least < np.inf:
        memory[_BASE] = least
    before = memory[_WINDOW]
    window = last(seen[first + _S_WINDOW], memory, _WINDOW)
    memory[_STILL] = 0.0 if window > before else memory[_STILL] + 1.0
    values[THROUGHPUT] = rate
    values[RTT] = mean(rtt, memory, _RTT)
    values[CWND] = window
    values[BOTTLENECK] = peak
    values[BASE_RTT] = memory[_BASE]
    values[EXPFLAG] = 1.0 if memory[_STILL] >= explore_after else 0.0


@entry
def _observe(seen: Any, memory: Any, settings: Any, values: Any) -> None:
    observe(seen, 0, memory, settings, values)
