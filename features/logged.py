"""Observations of a whole log at once, by the compiled observers that agents use as time goes on.

`features.intervals.observations` gives the same numbers an interval at a time, from Python. Here
the intervals of a subflow are summed up first, into a record per interval and variable, and one
compiled loop goes through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.netsim.jit import entry
from data.netsim.seen import CODES, see
from data.netsim.state import SEEN, VARIABLES, zeros
from features import macc, nuwa, tcco
from features.intervals import Batch, Float

SOURCES = ("features/intervals.py", "features/tcco.py", "features/nuwa.py", "features/macc.py")
"""What is compiled into this file's entry points besides the simulator."""


def summed(events: Batch, start_us: int, interval_us: int, count: int) -> NDArray[Any]:
    """What each interval's samples come to.

    Parameters
    ----------
    events : mapping
        variable -> (time_us, value), of one subflow, times ascending.
    start_us, interval_us, count : int
        When the first interval begins, their length and number; an interval is ``[start, end)``.

    Returns
    -------
    SEEN array [count * VARIABLES]
        The records of an interval's variables stand together.
    """
    seen = zeros(count * VARIABLES, SEEN)
    edges = start_us + interval_us * np.arange(count + 1)
    for name, (times, values) in events.items():
        if name in CODES:
            cuts = np.searchsorted(times, edges)
            _sum_up(seen, CODES[name], np.array(values, np.int64), cuts)
    return seen


def tcco_rows(seen: NDArray[Any], params: tcco.TccoObservation) -> Float:
    """Observations of TCCO's agent, of one subflow; float64 array [count, 6]."""
    rows = np.empty((len(seen) // VARIABLES, len(tcco.FEATURES)))
    _tcco(seen, tcco.memory(params), tcco.settings(params), rows)
    return rows


def nuwa_rows(seen: NDArray[Any]) -> Float:
    """Observations of Nuwa's agent; float64 array [count, 7]."""
    rows = np.empty((len(seen) // VARIABLES, len(nuwa.FEATURES)))
    _nuwa(seen, np.zeros(len(nuwa.FEATURES)), rows)
    return rows


def sender_rows(seen: NDArray[Any]) -> Float:
    """Observations of a sender of MA-CC's; float64 array [count, 3]."""
    rows = np.empty((len(seen) // VARIABLES, len(macc.SENDER)))
    _sender(seen, np.zeros(macc.SENDER_MEMORY), rows)
    return rows


def last_values(seen: NDArray[Any], variable: str, before: int = 0) -> NDArray[np.int64]:
    """A variable's last value at each interval's end; ``before`` until there is one."""
    cells = seen[CODES[variable] :: VARIABLES]
    there = np.where(cells["n"] > 0, np.arange(len(cells)), -1)
    newest = np.maximum.accumulate(there)
    return np.where(newest >= 0, cells["last"][newest], before)


def counted(seen: NDArray[Any], variable: str) -> NDArray[np.int64]:
    """How much a variable's samples add up to in each interval."""
    totals: NDArray[np.int64] = seen["total"][CODES[variable] :: VARIABLES].copy()
    return totals


def lacking(events: Mapping[str, Any], needed: Mapping[str, str]) -> list[str]:
    """What a log lacks, in words.

    Parameters
    ----------
    events : mapping
        Variables that are there.
    needed : mapping
        Variable, or several of which one will do with ``|`` between them -> what it is.
    """
    return [
        f"no {' or '.join(name.split('|'))} ({what})"
        for name, what in needed.items()
        if not any(one in events and len(events[one][0]) for one in name.split("|"))
    ]


@entry
def _sum_up(seen: Any, code: int, values: Any, cuts: Any) -> None:
    for n in range(len(cuts) - 1):
        for j in range(cuts[n], cuts[n + 1]):
            see(seen[n * VARIABLES + code], values[j])


@entry
def _tcco(seen: Any, memory: Any, settings: Any, rows: Any) -> None:
    for n in range(len(rows)):
        tcco.observe(seen, n * VARIABLES, memory, settings, rows[n])


@entry
def _nuwa(seen: Any, memory: Any, rows: Any) -> None:
    for n in range(len(rows)):
        nuwa.observe(seen, n * VARIABLES, memory, rows[n])


@entry
def _sender(seen: Any, memory: Any, rows: Any) -> None:
    for n in range(len(rows)):
        macc.observe_sender(seen, n * VARIABLES, memory, rows[n])
