"""Observations of agents: one vector per decision interval, online and from a log.

An observer is fed one interval's events after the other and keeps what it must remember; the
simulator feeds it as time goes on, `observations` from a log, so both see the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from features.spec import Feature

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Batch = Mapping[str, tuple[Int, Int]]
"""Events of one interval: variable -> (time_us, value), times ascending."""


class Observer(Protocol):
    """Makes an observation of every interval."""

    def update(self, batch: Batch) -> Float:
        """Take an interval's events; values [d] in the units of the family's features."""


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
            first, last = cuts[name][k], cuts[name][k + 1]
            if last > first:
                batch[name] = (times[first:last], values[first:last])
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
    low, high = [f.low for f in features], [f.high for f in features]
    clipped = np.clip(values, low, high)
    part = np.divide(clipped, clipped + np.asarray(half), out=np.zeros_like(clipped),
                     where=clipped > 0)  # fmt: skip
    result: NDArray[np.float32] = part.astype(np.float32)
    return result


class Last:
    """The last value seen of a variable."""

    def __init__(self, variable: str, initial: float = 0.0) -> None:
        self.variable = variable
        self.value = initial

    def update(self, batch: Batch) -> float:
        """Value at the interval's end."""
        if self.variable in batch:
            self.value = float(batch[self.variable][1][-1])
        return self.value


class Growth:
    """By how much a counter has grown in the interval."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.count = 0

    def update(self, batch: Batch) -> float:
        """Growth since the interval before; counters start from 0."""
        if self.variable not in batch:
            return 0.0
        now = int(batch[self.variable][1][-1])
        grown, self.count = now - self.count, now
        return float(grown)


class Mean:
    """Mean of a variable over the interval; the one before if there are no values."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.value = 0.0

    def update(self, batch: Batch) -> float:
        """Mean, or what it was."""
        if self.variable in batch:
            self.value = float(batch[self.variable][1].mean())
        return self.value
