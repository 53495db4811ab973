"""Trees that turn Nuwa's k by two thresholds on the queueing delay; these depend on T_d.

They do as `models.envs.scripted.nuwa_thresholds`: a large k where the delay is far from T_d, to be
there soon, and a small one near it. `models.distill.by_return` searches for their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from features.derived import ONE
from models.distill.nodes import Node
from models.envs.nuwa_loop import ACTIONS

Floats = NDArray[np.float64]
UP, DOWN = ACTIONS.index(max(ACTIONS)), ACTIONS.index(min(ACTIONS))


@dataclass(frozen=True)
class Thresholds:
    """Below and above what k goes up, with the first value and how far that may be off.

    Attributes
    ----------
    short_low, long_low : float
        Share of T_d below which the link isn't filled, of a short T_d and of a long one.
    short_high, long_high : float
        Share of T_d above which there is too much of a queue.
    empty_ms : float
        Queueing delay below which the link isn't filled, whatever T_d is.
    long : float
        What T_d is long, in powers of two of 50 ms.
    """

    short_low: float
    long_low: float
    short_high: float
    long_high: float
    empty_ms: float
    long: float


START = np.array([0.2, 0.2, 1.0, 1.0, 1.0, 0.0])
SPREAD = np.array([0.15, 0.15, 0.3, 0.3, 1.0, 0.7])
"""In the order of `Thresholds`: around the rule by hand."""


def root(numbers: Floats, settings: Mapping[str, Any]) -> Node:
    """The tree of `Thresholds`.

    Parameters
    ----------
    numbers : float64 array [6]
        In the order of `Thresholds`'s fields.
    settings : mapping
        Of Nuwa's environment; not needed.
    """
    t = Thresholds(*numbers)
    short, long = _by_delay(t, t.short_low, t.short_high), _by_delay(t, t.long_low, t.long_high)
    return ("target_delay_us", 50e3 * 2.0**t.long, short, long)


def _by_delay(t: Thresholds, low: float, high: float) -> Node:
    near: Node = ("queueing_us", 1e3 * t.empty_ms, UP, DOWN)
    filled: Node = ("queueing_over_target", low * ONE, UP, near)
    return ("queueing_over_target", high * ONE, filled, UP)
