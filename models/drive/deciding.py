"""Windows of live connections by TCCO's observations: from a proxy's reports to its orders.

The observations are those of `features.tcco`, by the very code that training ran, of sums that the
proxy made over an interval's ACKs. How far an action goes and where its bound lies comes with the
report: the control in the kernel measures what a path holds, and bounds the window by it once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from data.lab.reports import ALONE, DRIVEN, START, WINDOW, Records
from data.netsim.jit import entry
from data.netsim.seen import CODES
from data.netsim.state import SEEN, VARIABLES, zeros
from features import tcco

Float = NDArray[np.float64]
SOURCES = ("features/intervals.py", "features/tcco.py")
"""What is compiled into this file's entry point besides the simulator."""
_DELIVERED, _RTT, _CWND = CODES["delivered_bytes"], CODES["rtt_us"], CODES["snd_cwnd"]


@dataclass
class Moment:
    """One connection at the end of an interval.

    Attributes
    ----------
    values : float64 array [subflows, 6]
        `features.tcco.FEATURES` in their order and units, subflows by their numbers.
    targets, units, most : int64 arrays [subflows]
        Windows so far, what an action moves them by, and their upper bounds, in segments.
    started : bool
        Whether this is the connection's first decision.
    key : tuple
        Which connection it is.
    """

    values: Float
    targets: NDArray[np.int64]
    units: NDArray[np.int64]
    most: NDArray[np.int64]
    started: bool
    key: tuple[int, int]


class Policy(Protocol):
    """Says how many units each subflow's window moves by."""

    def __call__(self, moment: Moment) -> NDArray[np.int64]:
        """Steps, from -reach to +reach; int64 array [subflows]."""

    def forget(self, key: tuple[int, int]) -> None:
        """Forget a connection that has ended."""


@dataclass
class _Subflow:
    memory: Float
    seen: Any = field(default_factory=lambda: zeros(VARIABLES, SEEN))
    values: Float = field(default_factory=lambda: np.zeros(len(tcco.FEATURES)))
    generation: int = -1
    delivered_bytes: int = 0


class Deciding:
    """All connections of a proxy.

    Parameters
    ----------
    policy : Policy
    params : TccoObservation
        How observations are made.
    min_cwnd : int
        Least window, in segments.
    """

    def __init__(self, policy: Policy, params: tcco.TccoObservation, min_cwnd: int) -> None:
        self._policy, self._params, self._min = policy, params, min_cwnd
        self._settings = tcco.settings(params)
        self._subflows: dict[int, _Subflow] = {}
        self._begun: set[tuple[int, int]] = set()

    def observe(self, report: Records, intervals: int = 1) -> Float:
        """What a report says of a subflow; float64 array [6].

        Parameters
        ----------
        report : REPORT record
        intervals : int
            How many it sums up. What was delivered in them counts as delivered evenly: as that of
            a single one it would be a rate that the path never had.
        """
        slot, generation = int(report["slot"]), int(report["generation"])
        subflow = self._subflows.get(slot)
        if subflow is None or subflow.generation != generation:
            subflow = self._subflows[slot] = _Subflow(tcco.memory(self._params))
            subflow.generation, intervals = generation, 1
        before, now = subflow.delivered_bytes, int(report["delivered_bytes"])
        for number in range(1, intervals + 1):
            delivered = before + (now - before) * number // intervals
            self._interval(subflow, report, delivered, number == intervals)
        subflow.delivered_bytes = now
        return subflow.values

    def _interval(self, subflow: _Subflow, report: Records, delivered: int, last: bool) -> None:
        seen = subflow.seen
        seen["n"] = seen["total"] = 0
        for code, value in ((_DELIVERED, delivered), (_CWND, report["cwnd"])):
            seen[code] = (1, value, value, value)
        if last and report["rtt_count"]:
            least = report["rtt_least_us"]
            seen[_RTT] = (report["rtt_count"], report["rtt_sum_us"], least, least)
        _observe(seen, subflow.memory, self._settings, subflow.values)

    def values(self, slot: int) -> list[float]:
        """The last observation of a flow."""
        return [float(value) for value in self._subflows[slot].values]

    def decide(self, reports: Records, intervals: int = 1) -> Records:
        """Windows for reports of so many intervals; a `WINDOW` for each flow past its start."""
        groups: dict[tuple[int, int], list[Records]] = {}
        for report in reports:
            # Plain TCP has no token: each socket is a connection.
            token = int(report["token"]) or -1 - int(report["slot"])
            groups.setdefault((int(report["inode"]), token), []).append(report)
        orders = []
        for key, flows in groups.items():
            flows.sort(key=lambda report: int(report["sfid"]))
            values = np.array([self.observe(report, intervals) for report in flows])
            if any(report["phase"] == START for report in flows):
                continue
            orders += self._ordered(key, flows, values)
        for gone in self._begun - groups.keys():
            self._policy.forget(gone)
        self._begun &= groups.keys()
        return np.array(orders, WINDOW)

    def _ordered(self, key: tuple[int, int], flows: list[Records], values: Float) -> list[Any]:
        driven = [report["phase"] == DRIVEN for report in flows]
        # A window that CUBIC had meanwhile is where the next step begins.
        targets = [
            int(r["target"] if on else r["cwnd"]) for r, on in zip(flows, driven, strict=True)
        ]
        units = np.maximum(1, [int(report["unit"]) for report in flows])
        most = np.array([int(report["most"]) for report in flows])
        moment = Moment(values, np.array(targets), units, most, key not in self._begun, key)
        self._begun.add(key)
        wanted = moment.targets + units * self._policy(moment)
        windows = np.clip(wanted, self._min, np.maximum(self._min, most))
        return [
            (report["slot"], report["generation"], window, 0)
            for report, window in zip(flows, windows, strict=True)
            if report["phase"] in (DRIVEN, ALONE)
        ]


@entry
def _observe(seen: Any, memory: Any, settings: Any, values: Any) -> None:
    tcco.observe(seen, 0, memory, settings, values)
