"""Observations of MA-CC's agents: o1 of a sender, o2 of a router (ma-cc.txt section 3.2)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from data.strict import Strict
from features.intervals import Batch, Float, Growth, Last, Mean
from features.spec import Feature

_SOURCE = "ma-cc.txt section 3.2"
SENDER = (
    Feature("acked_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "segmentsAcked in the step, as bytes"),
    Feature("in_flight_bytes", "bytes", 0.0, 1e9, 1, _SOURCE, "bytesInFlight at the step's end"),
    Feature("rtt_us", "us", 0.0, 1e7, 1, _SOURCE, "RTT: mean of the step's ACKs"),
)
ACKED, IN_FLIGHT, RTT = range(len(SENDER))
SENDER_HALF = (2.5e5, 4e5, 3e5)
"""What `features.intervals.scaled` makes 0.5 (ours)."""
ROUTER = (
    Feature("queue_packets", "packets", 0.0, 1e6, 1, _SOURCE, "queueLength at the step's end"),
    Feature("dequeue_rate", "packets/s", 0.0, 1e7, 1, _SOURCE, "dequeueRate over the step"),
    Feature("queue_delay_us", "us", 0.0, 1e7, 1, _SOURCE, "currQueueDelay at the step's end"),
)
QUEUE, DEQUEUED, WAIT = range(len(ROUTER))
ROUTER_HALF = (50.0, 2500.0, 2e4)
"""What `features.intervals.scaled` makes 0.5 (ours)."""


class MaccObservation(Strict):
    """How an observation is made."""

    interval_us: int = Field(200_000, gt=0)
    """Step duration (Table 1: 0.2 s)."""


class SenderObserver:
    """One TCP agent's observations."""

    def __init__(self) -> None:
        self._acked, self._flight = Growth("ack"), Last("in_flight_bytes")
        self._rtt = Mean("rtt_us")

    def update(self, batch: Batch) -> Float:
        """One step.

        Returns
        -------
        float64 array [3]
            `SENDER` in its order and units.
        """
        return np.array(
            [self._acked.update(batch), self._flight.update(batch), self._rtt.update(batch)]
        )


class RouterObserver:
    """One AQM agent's observations, and eq. 3's lossRate, which the agent doesn't see."""

    def __init__(self, params: MaccObservation) -> None:
        self._step_s = params.interval_us / 1e6
        self._queue, self._wait = Last("queue_packets"), Last("queue_delay_us")
        self._out = Growth("dequeued_packets")
        self._offered, self._dropped = Growth("offered_packets"), Growth("dropped_packets")
        self.loss_rate = 0.0
        """Share of the packets that came in the last step which the queue refused."""

    def update(self, batch: Batch) -> Float:
        """One step.

        Returns
        -------
        float64 array [3]
            `ROUTER` in its order and units.
        """
        offered, dropped = self._offered.update(batch), self._dropped.update(batch)
        self.loss_rate = dropped / offered if offered else 0.0
        rate = self._out.update(batch) / self._step_s
        return np.array([self._queue.update(batch), rate, self._wait.update(batch)])
