"""An agent observes and controls a simulation here, from one decision to the next.

A `Session` advances a simulation by whole decision intervals and hands out what each interval's
log has, per subflow or link. What no ACK carries (the receiver's window, a router's queue) is read
at the interval's end and logged like the rest, with the last microsecond before the decision as
its time: so an interval is always ``[start, end)``, here and in a log that is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.network import Network
from data.netsim.scenario import Scenario
from data.netsim.state import LOG, LOG_VARIABLES
from data.schema import SAMPLED

Ints = NDArray[np.int64]
Batch = dict[str, tuple[Ints, Ints]]
"""Events of one interval: variable -> (time_us, value), both int64, times ascending."""
Reader = Callable[[Network], Iterable[tuple[int, str, int]]]
"""Reads the network: (place, variable, value); places as `subflow_place` and `link_place` say."""

NAMES = (*LOG_VARIABLES, *SAMPLED)
"""Variables by the numbers they have in the records of a log."""
_CODES = {name: code for code, name in enumerate(NAMES)}


class Session:
    """A simulation that is advanced by decision intervals.

    Parameters
    ----------
    scenario : Scenario
        What is simulated.
    controller : str
        Congestion control of the flows that don't name one.
    seed : int
        Seed of the simulation.
    interval_us : int
        Time between decisions.
    reader : callable, optional
        Called at the end of every interval for what the log doesn't have.
    keep_log : bool, optional
        Keep everything for `data.netsim.events.tables`.
    """

    def __init__(
        self,
        scenario: Scenario,
        controller: str,
        seed: int,
        interval_us: int,
        reader: Reader | None = None,
        keep_log: bool = False,
    ) -> None:
        self.network = Network(scenario, controller, seed, log=True)
        self.interval_us = interval_us
        self.intervals = 0
        self._reader = reader
        self._keep = keep_log
        self._late = np.zeros(0, LOG)
        self._samples: list[NDArray[Any]] = []

    @property
    def end_us(self) -> int:
        """Time of the last decision."""
        return self.intervals * self.interval_us

    def samples(self) -> NDArray[Any]:
        """What the reader has read, as records of a log; empty unless the log is kept."""
        return np.concatenate(self._samples) if self._samples else np.zeros(0, LOG)

    def advance(self) -> dict[int, Batch]:
        """Run for one interval.

        Returns
        -------
        dict
            place -> the events in ``[start, end)``; a place or variable without any is absent.
        """
        self.intervals += 1
        end = self.end_us * 1000
        self.network.advance(end / 1e9)
        parts = [self._late, self.network.take_log(self._keep)]
        if self._reader is not None:
            read = [
                (end - 1, place, _CODES[name], value)
                for place, name, value in self._reader(self.network)
            ]
            parts.append(np.array(read, LOG))
            if self._keep:
                self._samples.append(parts[-1])
        rows = np.concatenate(parts)
        # The clock of a log has microseconds: an event at the very end belongs to the next one.
        late = rows["t"] >= end
        if late.any():
            self._late, rows = rows[late], rows[~late]
        else:
            self._late = self._late[:0]
        return _by_place(rows)


def _by_place(rows: NDArray[Any]) -> dict[int, Batch]:
    """Cut records into series; within one, order is kept."""
    if not len(rows):
        return {}
    key = rows["sub"] * len(NAMES) + rows["variable"]
    if key.max() < 1 << 15:
        # numpy sorts 16 bits by radix, several times as fast.
        key = key.astype(np.int16)
    order = np.argsort(key, kind="stable")
    key, time_us, value = key[order], rows["t"][order] // 1000, rows["value"][order]
    edges = np.flatnonzero(np.diff(key)) + 1
    result: dict[int, Batch] = {}
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(key)], strict=True):
        place, code = divmod(int(key[first]), len(NAMES))
        result.setdefault(place, {})[NAMES[code]] = (time_us[first:last], value[first:last])
    return result


def subflow_place(network: Network, connection: int, subflow: int = 0) -> int:
    """Place of a connection's subflow, both from 0."""
    return int(network.state.conn[connection]["sub0"]) + subflow


def link_place(network: Network, name: str) -> int:
    """Place of a link: after all subflows."""
    return len(network.state.sub) + network.link_names.index(name)


def waiting(network: Network, name: str) -> tuple[int, int]:
    """Packets and bytes that wait in a link's queue now.

    The link's own counts are brought up to date when a packet arrives; until then they have
    packets whose service has begun.
    """
    link, packets = network.link(name), network.state.pkt
    count, size, p = int(link["q_packets"]), int(link["q_bytes"]), int(link["qhead"])
    now = int(network.state.g["now"])
    while p >= 0 and packets[p]["start"] <= now:
        count -= 1
        size -= int(packets[p]["wire"])
        p = int(packets[p]["next"])
    return count, size


def in_flight(subflow: Any) -> int:
    """Segments sent and neither acknowledged nor held lost (RFC 6675's pipe)."""
    out = int(subflow["snd_nxt"]) - int(subflow["snd_una"])
    gone = int(subflow["sacked_out"]) + int(subflow["lost_out"])
    return out - gone + int(subflow["retrans_out"])
