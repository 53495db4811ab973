"""Observations of TCCO's agent: tcco.txt section III.C.2, per subflow and decision interval.

RTT and window come from what a kernel logs with each ACK. Throughput is that of the data known to
have been delivered, which a client in the kernel reads (``delivered_bytes``); logs without it have
``ack``, which stands still while a segment is missing and then jumps.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from data.strict import Strict
from features.intervals import Batch, Float, Growth, Last, Mean
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
    """One subflow's observations."""

    def __init__(self, params: TccoObservation) -> None:
        self._params = params
        life = max(1, params.lifetime_us // params.interval_us)
        self._peaks = np.zeros(life)
        self._lows = np.full(life, np.inf)
        self._recent = np.zeros(params.peak_intervals)
        self._count = 0
        self._base = 0.0
        self._still = 0
        self._acked, self._delivered = Growth("ack"), Growth("delivered_bytes")
        self._knows_delivered = False
        self._rtt, self._window = Mean("rtt_us"), Last("snd_cwnd")

    def update(self, batch: Batch) -> Float:
        """One interval.

        Returns
        -------
        float64 array [6]
            `FEATURES` in their order and units.
        """
        params, place = self._params, self._count % len(self._peaks)
        self._knows_delivered |= "delivered_bytes" in batch
        acked, delivered = self._acked.update(batch), self._delivered.update(batch)
        rate = (delivered if self._knows_delivered else acked) * 8e6 / params.interval_us
        self._recent[self._count % params.peak_intervals] = rate
        self._count += 1
        # ACKs come in bursts: a single interval's rate would be a peak of the noise.
        self._peaks[place] = self._recent.sum() / min(self._count, params.peak_intervals)
        self._lows[place] = float(batch["rtt_us"][1].min()) if "rtt_us" in batch else np.inf
        least = float(self._lows.min())
        if least < np.inf:
            self._base = least
        before = self._window.value
        cwnd = self._window.update(batch)
        self._still = 0 if cwnd > before else self._still + 1
        values = np.empty(len(FEATURES))
        values[THROUGHPUT] = rate
        values[RTT] = self._rtt.update(batch)
        values[CWND] = cwnd
        values[BOTTLENECK] = self._peaks.max()
        values[BASE_RTT] = self._base
        values[EXPFLAG] = self._still >= params.explore_after
        return values
