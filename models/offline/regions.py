"""Regions of what TCCO's agent observes, by edges in units, and the words that name them.

A region is a range of each axis: of the window, the path's base RTT, the rate that its bottleneck
has shown, the RTT over the base RTT, and the number of subflows. Losses aren't observed by the
agent, so that they are no axis; what they lead to, queues and small windows, is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from features import tcco

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """One of the axes.

    Attributes
    ----------
    name : str
        As a condition names it, with its unit.
    edges : tuple of float
        Where one range ends, which has its edge still, and the next one begins.
    above, between, below : str
        Words for what lies beyond an edge, between two and up to one.
    values : callable
        Observations, float32 array [T, S, D], -> float64 array [T, S] in the axis's unit.
    """

    name: str
    edges: tuple[float, ...]
    above: str
    between: str
    below: str
    values: Callable[[NDArray[np.float32]], Float]

    @property
    def bins(self) -> int:
        """How many ranges there are."""
        return len(self.edges) + 1

    def words(self, low: float | None, high: float | None) -> str:
        """A range in words, from an edge to another; None where it has no end."""
        if low is None:
            return self.below.format(high=f"{high:g}")
        if high is None:
            return self.above.format(low=f"{low:g}")
        return self.between.format(low=f"{low:g}", high=f"{high:g}")

    def range(self, first: int, last: int | None = None) -> tuple[float | None, float | None]:
        """Limits of a bin, or of all from one to another."""
        last = first if last is None else last
        low = self.edges[first - 1] if first else None
        return low, self.edges[last] if last < len(self.edges) else None


def _column(place: int, unit: float) -> Callable[[NDArray[np.float32]], Float]:
    return lambda seen: seen[..., place].astype(np.float64) / unit


def _ratio(seen: NDArray[np.float32]) -> Float:
    base = np.maximum(seen[..., tcco.BASE_RTT].astype(np.float64), 1.0)
    return seen[..., tcco.RTT].astype(np.float64) / base


def _subflows(seen: NDArray[np.float32]) -> Float:
    return np.full(seen.shape[:2], float(seen.shape[1]))


AXES: tuple[Axis, ...] = (
    Axis("snd_cwnd", (10, 50, 200, 1000), "above {low} segments",
         "with {low} to {high} segments", "with at most {high} segments",
         _column(tcco.CWND, 1.0)),
    Axis("base_rtt_ms", (10, 30, 100, 300), "on paths beyond {low} ms",
         "on paths of {low} to {high} ms", "on paths of at most {high} ms",
         _column(tcco.BASE_RTT, 1e3)),
    Axis("bottleneck_mbps", (2, 10, 50, 200), "at more than {low} Mbit/s",
         "at {low} to {high} Mbit/s", "at no more than {high} Mbit/s",
         _column(tcco.BOTTLENECK, 1e6)),
    Axis("rtt_ratio", (1.2, 2, 4), "with RTTs beyond {low} base RTTs",
         "with RTTs of {low} to {high} base RTTs", "with RTTs of at most {high} base RTTs",
         _ratio),
    Axis("subflows", (1, 2), "in connections of more than {low} subflows",
         "in connections of more than {low} and up to {high} subflows",
         "in connections of at most {high} subflow(s)", _subflows),
)  # fmt: skip
"""The edges are ours, by what simulated scenarios and the lab's paths have."""
SHAPE = tuple(axis.bins for axis in AXES)
REGIONS = int(np.prod(SHAPE))
"""How many regions there are."""


def places(seen: NDArray[np.float32]) -> NDArray[np.int64]:
    """Region of each subflow's decision, int64 array [T, S].

    Parameters
    ----------
    seen : float32 array [T, S, D]
        Observations of a run, in their units.
    """
    bins = [np.searchsorted(axis.edges, axis.values(seen), side="left") for axis in AXES]
    found: NDArray[np.int64] = np.ravel_multi_index(tuple(bins), SHAPE)
    return found


def named(region: int) -> str:
    """A region in words."""
    bins = np.unravel_index(region, SHAPE)
    ranges = (axis.range(int(at)) for axis, at in zip(AXES, bins, strict=True))
    words = (axis.words(*limits) for axis, limits in zip(AXES, ranges, strict=True))
    return " ".join(words)
