"""Observations of Nuwa's agent: v_t = (g_t, w_t, r_t, l_t) of nuwa.txt section V.B.

With them go T_d and k, without which the same vector asks for different actions, and the queueing
delay, which T_d is to be compared with (ours). All are the receiver's own. Its statistics (there
an eBPF map, here `data.schema.SAMPLED`) are read once an interval; eq. 10's history is added by the
code that stacks the vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from data.netsim.jit import compiled, entry
from data.netsim.seen import CODES
from data.strict import Strict
from features.intervals import Batch, Float, Watched, bounds, growth, last
from features.spec import Feature

_SOURCE = "nuwa.txt section V.B"
_OURS = "ours, see docs/deviations.md"
FEATURES = (
    Feature("received_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "g_t: data received in the interval"),
    Feature("rcv_wnd_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "w_t: window the receiver announces"),
    Feature("rcv_queue_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "r_t: data in the receive buffer"),
    Feature("owd_us", "us", 0.0, 1e7, 1, _SOURCE, "l_t: one-way delay of the interval's segments"),
    Feature("target_delay_us", "us", 0.0, 1e6, 1, _OURS, "T_d, which the application sets"),
    Feature("gain_milli", "1/1000", 0.0, 1e5, 1, _OURS, "k, which the agent multiplies"),
    Feature("queueing_us", "us", 0.0, 1e7, 1, _OURS, "l_t over the least one so far"),
)
RECEIVED, WINDOW, BUFFER, DELAY, TARGET, GAIN, QUEUEING = range(len(FEATURES))
HALF = (1e5, 1e5, 1e4, 5e4, 5e4, 3e3, 5e4)
"""What `features.intervals.scaled` makes 0.5 (ours)."""
BOUNDS = bounds(FEATURES, HALF)
SOURCES = ("features/intervals.py",)
"""What is compiled into this file's entry points besides the simulator."""


class NuwaObservation(Strict):
    """How an observation is made."""

    interval_us: int = Field(100_000, gt=0)
    """Time between decisions: 800 of them are the 80 s of Table I (ours)."""


class ReceiverObserver:
    """One receiver's observations, from batches of its events."""

    def __init__(self) -> None:
        self._watched, self._memory = Watched(), np.zeros(len(FEATURES))

    def update(self, batch: Batch) -> Float:
        """One interval.

        Returns
        -------
        float64 array [7]
            `FEATURES` in their order and units.
        """
        self._watched.take(batch)
        values = np.empty(len(FEATURES))
        _observe(self._watched.seen, self._memory, values)
        return values


_S_RECEIVED = CODES["received_bytes"]
_S_REST = np.array([CODES[f.name] for f in FEATURES[1:QUEUEING]])


@compiled
def observe(seen: Any, first: int, memory: Any, values: Any) -> None:
    """One interval: `FEATURES` from the records from ``first`` on (`data.netsim.seen`).

    ``memory`` is a float64 array [7] of zeros before the first interval.
    """
    values[RECEIVED] = growth(seen[first + _S_RECEIVED], memory, RECEIVED)
    for i in range(1, QUEUEING):
        values[i] = last(seen[first + _S_REST[i - 1]], memory, i)
    least, delay = memory[QUEUEING], values[DELAY]
    if delay > 0.0 and (least <= 0.0 or delay < least):
        memory[QUEUEING] = least = delay
    values[QUEUEING] = max(0.0, delay - least)


@entry
def _observe(seen: Any, memory: Any, values: Any) -> None:
    observe(seen, 0, memory, values)
