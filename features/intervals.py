"""Observations of agents: one vector per decision interval, online and from a log.

What an interval's samples come to is a record per variable (`data.netsim.seen`), and an observer
is a compiled function of those records and of what it must remember. The simulator's batches call
it as time goes on, `observations` calls it for a log, so both see the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from data.netsim.jit import compiled, entry, inlined
from data.netsim.seen import CODES, forget, see
from data.netsim.state import SEEN, VARIABLES, zeros
from features.spec import Feature

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Batch = Mapping[str, tuple[Int, Int]]
"""Events of one interval: variable -> (time_us, value), times ascending."""


class Observer(Protocol):
    """Makes an observation of every interval."""

    def update(self, batch: Batch) -> Float:
        """Take an interval's events; values [d] in the units of the family's features."""


class Watched:
    """Sums up intervals of one place for the compiled observers."""

    def __init__(self) -> None:
        self.seen = zeros(VARIABLES, SEEN)

    def take(self, batch: Batch) -> None:
        """Forget the interval before and sum up this one; what no agent observes is left out."""
        _forget(self.seen)
        for name, (_, values) in batch.items():
            if name in CODES:
                _see(self.seen, CODES[name], np.array(values, np.int64))


@entry
def _forget(seen: Any) -> None:
    forget(seen, 0, len(seen))


@entry
def _see(seen: Any, code: int, values: Any) -> None:
    for value in values:
        see(seen[code], value)


@inlined
def growth(cell: Any, memory: Any, at: int) -> float:
    """By how much a counter has grown since the interval before; counters start from 0."""
    if cell.n == 0:
        return 0.0
    grown = float(cell.last) - memory[at]
    memory[at] = float(cell.last)
    return float(grown)


@inlined
def last(cell: Any, memory: Any, at: int) -> float:
    """The last value that was seen of a variable."""
    if cell.n > 0:
        memory[at] = float(cell.last)
    return float(memory[at])


@inlined
def mean(cell: Any, memory: Any, at: int) -> float:
    """Mean of a variable over the interval; the one before if there are no values."""
    if cell.n > 0:
        memory[at] = float(cell.total) / float(cell.n)
    return float(memory[at])


def batches(events: Batch, start_us: int, interval_us: int, count: int) -> Iterator[Batch]:
    """Cut a log into intervals ``[start, end)``.

    Parameters
    ----------
    events : mapping
        variable -> (time_us, value), of one subflow or link.
    start_us : int
        When the first interval begins, in the log's clock.
    interval_us, count : int
        Length and number of intervals.
    """
    edges = start_us + interval_us * np.arange(count + 1)
    cuts = {name: np.searchsorted(times, edges) for name, (times, _) in events.items()}
    for k in range(count):
        batch: dict[str, tuple[Int, Int]] = {}
        for name, (times, values) in events.items():
            begin, end = cuts[name][k], cuts[name][k + 1]
            if end > begin:
                batch[name] = (times[begin:end], values[begin:end])
        yield batch


def observations(
    observer: Observer, events: Batch, start_us: int, interval_us: int, count: int
) -> Float:
    """Observations of one subflow or link from its log.

    Parameters
    ----------
    observer : Observer
        A new one.
    events, start_us, interval_us, count
        As for `batches`.

    Returns
    -------
    float64 array [count, d]
    """
    rows = [observer.update(b) for b in batches(events, start_us, interval_us, count)]
    return np.array(rows)


def bounds(features: Sequence[Feature], half: Sequence[float]) -> Float:
    """Range of each feature and the value that becomes 0.5, for `scale`; float64 array [d, 3]."""
    rows = [(f.low, f.high, h) for f, h in zip(features, half, strict=True)]
    return np.array(rows, np.float64)


@compiled
def scale(values: Any, bounds: Any, out: Any) -> None:
    """As `scaled`, for one vector [d]; written to ``out`` as float32."""
    for i in range(len(values)):
        low, high, half = bounds[i, 0], bounds[i, 1], bounds[i, 2]
        value = min(high, max(low, values[i]))
        out[i] = np.float32(value / (value + half)) if value > 0.0 else np.float32(0.0)


@entry
def _scale_rows(values: Any, bounds: Any, out: Any) -> None:
    for i in range(len(values)):
        scale(values[i], bounds, out[i])


def scaled(
    values: Float, features: Sequence[Feature], half: Sequence[float]
) -> NDArray[np.float32]:
    """What a network sees: ``x / (x + half)``, from 0 to 1.

    Nothing that occurs is cut off, and the ratio of two values near ``half`` shows as well on a
    slow path as on a fast one.

    Parameters
    ----------
    values : float64 array [..., d]
        In the features' units; clipped to their ranges.
    features : sequence of Feature
        The d features.
    half : sequence of float
        The d values that become 0.5; 0 for a flag, which stays 0 or 1.

    Returns
    -------
    float32 array [..., d]
    """
    rows = np.array(values, np.float64).reshape(-1, len(features))
    out = np.empty(rows.shape, np.float32)
    _scale_rows(rows, bounds(features, half), out)
    return out.reshape(np.shape(values))
