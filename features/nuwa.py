"""Observations of Nuwa's agent: v_t = (g_t, w_t, r_t, l_t) of nuwa.txt section V.B.

All are the receiver's own. Its statistics (there an eBPF map, here `data.schema.SAMPLED`) are
read once an interval; eq. 10's history is added by the code that stacks the vectors.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from data.strict import Strict
from features.intervals import Batch, Float, Growth, Last
from features.spec import Feature

_SOURCE = "nuwa.txt section V.B"
FEATURES = (
    Feature("received_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "g_t: data received in the interval"),
    Feature("rcv_wnd_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "w_t: window the receiver announces"),
    Feature("rcv_queue_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "r_t: data in the receive buffer"),
    Feature("owd_us", "us", 0.0, 1e7, 1, _SOURCE, "l_t: one-way delay of the interval's segments"),
)
RECEIVED, WINDOW, BUFFER, DELAY = range(len(FEATURES))
HALF = (1e5, 1e5, 1e4, 5e4)
"""What `features.intervals.scaled` makes 0.5 (ours)."""


class NuwaObservation(Strict):
    """How an observation is made."""

    interval_us: int = Field(100_000, gt=0)
    """Time between decisions: 800 of them are the 80 s of Table I (ours)."""


class ReceiverObserver:
    """One receiver's observations."""

    def __init__(self) -> None:
        self._received = Growth("received_bytes")
        self._last = [Last(f.name) for f in FEATURES[1:]]

    def update(self, batch: Batch) -> Float:
        """One interval.

        Returns
        -------
        float64 array [4]
            `FEATURES` in their order and units.
        """
        return np.array([self._received.update(batch), *(x.update(batch) for x in self._last)])
