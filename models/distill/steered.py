"""Trees that steer windows to a share of what the path holds; which share depends on the path.

They do as `models.envs.scripted.tcco_tracking`, whose share is the same everywhere.
`models.distill.by_return` searches for their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from features.derived import ONE
from models.distill.nodes import Node

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Steering:
    """What decides of a path's share, with its first value and how far that may be off.

    Attributes
    ----------
    near, middle, far : float
        Share of what the path holds by the base RTT, which is below, between or above two bounds.
    small, slack : float
        Added where the path holds few segments, and where less arrives than it carries.
    below : float
        Of the bottleneck's rate, what counts as less.
    first, more : float
        Lower bound of the base RTT in powers of two of 10 ms, and how many of them the upper one is
        above it.
    few : float
        How many segments are few, in powers of two of 64.
    """

    near: float
    middle: float
    far: float
    small: float
    slack: float
    below: float
    first: float
    more: float
    few: float


START = np.array([1.4, 1.25, 1.2, 0.1, -0.05, 0.7, 0.0, 2.0, -1.0])
SPREAD = np.array([0.15, 0.1, 0.1, 0.15, 0.1, 0.1, 0.7, 0.7, 1.0])
"""In the order of `Steering`: around the tracking script's 1.25, and more on short paths, where a
queue costs little time."""


def root(numbers: Floats, settings: Mapping[str, Any]) -> Node:
    """The tree of a `Steering`.

    Parameters
    ----------
    numbers : float64 array [9]
        In the order of `Steering`'s fields.
    settings : mapping
        Of TCCO's environment: ``step_share`` and ``reach``.
    """
    return _by_rtt(Steering(*numbers), float(settings["step_share"]), int(settings["reach"]))


def _by_rtt(s: Steering, step: float, reach: int) -> Node:
    lower, upper = (1e4 * 2.0**power for power in (s.first, s.first + abs(s.more)))
    near, middle, far = (_by_size(s, share, step, reach) for share in (s.near, s.middle, s.far))
    return ("base_rtt_us", lower, near, ("base_rtt_us", upper, middle, far))


def _by_size(s: Steering, share: float, step: float, reach: int) -> Node:
    small, large = (_by_rate(s, one, step, reach) for one in (share + s.small, share))
    return ("held_segments", 64 * 2.0**s.few, small, large)


def _by_rate(s: Steering, share: float, step: float, reach: int) -> Node:
    slack, full = (_to(one, step, reach) for one in (share + s.slack, share))
    return ("rate_over_peak", s.below * ONE, slack, full)


def _to(share: float, step: float, reach: int) -> Node:
    """Go to a share; while expflag asks for growth, by a step up at least."""
    free = _steps(share, step, range(-reach, reach + 1), reach)
    growing = _steps(share, step, range(1, reach + 1), reach)
    return ("expflag", 0.5, free, growing)


def _steps(share: float, step: float, deltas: range, reach: int) -> Node:
    """The delta whose end is nearest to the share: halved until one is left."""
    if len(deltas) == 1:
        return deltas[0] + reach
    half = len(deltas) // 2
    # A window above this is nearer to where one of the lesser deltas leads.
    bound = (share - (deltas[half] - 0.5) * step) * ONE
    more, less = (_steps(share, step, part, reach) for part in (deltas[half:], deltas[:half]))
    return ("cwnd_over_held", bound, more, less)
