"""Observations of MA-CC's agents: o1 of a sender, o2 of a router (ma-cc.txt section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from data.netsim.jit import compiled, entry
from data.netsim.seen import CODES
from data.strict import Strict
from features.intervals import Batch, Float, Watched, bounds, growth, last, mean
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
SENDER_BOUNDS, ROUTER_BOUNDS = bounds(SENDER, SENDER_HALF), bounds(ROUTER, ROUTER_HALF)
SOURCES = ("features/intervals.py",)
"""What is compiled into this file's entry points besides the simulator."""


class MaccObservation(Strict):
    """How an observation is made."""

    interval_us: int = Field(200_000, gt=0)
    """Step duration (Table 1: 0.2 s)."""


class SenderObserver:
    """One TCP agent's observations, from batches of its events."""

    def __init__(self) -> None:
        self._watched, self._memory = Watched(), np.zeros(SENDER_MEMORY)

    def update(self, batch: Batch) -> Float:
        """One step.

        Returns
        -------
        float64 array [3]
            `SENDER` in its order and units.
        """
        self._watched.take(batch)
        values = np.empty(len(SENDER))
        _observe_sender(self._watched.seen, self._memory, values)
        return values


class RouterObserver:
    """One AQM agent's observations, and eq. 3's lossRate, which the agent doesn't see."""

    def __init__(self, params: MaccObservation) -> None:
        self._watched, self._memory = Watched(), np.zeros(ROUTER_MEMORY)
        self._step_s = params.interval_us / 1e6
        self.loss_rate = 0.0
        """Share of the packets that came in the last step which the queue refused."""

    def update(self, batch: Batch) -> Float:
        """One step.

        Returns
        -------
        float64 array [3]
            `ROUTER` in its order and units.
        """
        self._watched.take(batch)
        values = np.empty(len(ROUTER))
        self.loss_rate = _observe_router(self._watched.seen, self._memory, self._step_s, values)
        return values


_ACKED, _FLIGHT, _RTT, SENDER_MEMORY = range(4)
_QUEUE, _WAIT, _OUT, _OFFERED, _DROPPED, ROUTER_MEMORY = range(6)
_S_ACK, _S_FLIGHT, _S_RTT = CODES["ack"], CODES["in_flight_bytes"], CODES["rtt_us"]
_S_QUEUE, _S_WAIT = CODES["queue_packets"], CODES["queue_delay_us"]
_S_OUT, _S_OFFERED = CODES["dequeued_packets"], CODES["offered_packets"]
_S_DROPPED = CODES["dropped_packets"]


@compiled
def observe_sender(seen: Any, first: int, memory: Any, values: Any) -> None:
    """One step of a sender: `SENDER` from the records from ``first`` on (`data.netsim.seen`)."""
    values[ACKED] = growth(seen[first + _S_ACK], memory, _ACKED)
    values[IN_FLIGHT] = last(seen[first + _S_FLIGHT], memory, _FLIGHT)
    values[RTT] = mean(seen[first + _S_RTT], memory, _RTT)


@compiled
def observe_router(seen: Any, first: int, memory: Any, step_s: float, values: Any) -> float:
    """One step of a router: `ROUTER`, and the loss rate as what is returned."""
    offered = growth(seen[first + _S_OFFERED], memory, _OFFERED)
    dropped = growth(seen[first + _S_DROPPED], memory, _DROPPED)
    values[QUEUE] = last(seen[first + _S_QUEUE], memory, _QUEUE)
    values[DEQUEUED] = growth(seen[first + _S_OUT], memory, _OUT) / step_s
    values[WAIT] = last(seen[first + _S_WAIT], memory, _WAIT)
    return dropped / offered if offered > 0.0 else 0.0


@entry
def _observe_sender(seen: Any, memory: Any, values: Any) -> None:
    observe_sender(seen, 0, memory, values)


@entry
def _observe_router(seen: Any, memory: Any, step_s: float, values: Any) -> float:
    return observe_router(seen, 0, memory, step_s, values)
