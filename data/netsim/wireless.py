"""Generated wireless links vary as measured ones do: each trace's unsteadiness is drawn too.

A rate is a slow and a fast first-order process, both in its logarithm, and pauses. Their
constants were chosen by `data.netsim.capacity` to resemble public traces of each kind
(docs/environments.md has both side by side); nothing of those traces is in here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

STEP_S = 0.1
_PAUSED = 0.01
"""Share of its rate that a link has left in a pause."""


@dataclass(frozen=True)
class Kind:
    """Constants of one kind of link.

    Attributes
    ----------
    spread, spread_log_sd : float
        Standard deviation of the rate's logarithm: median over traces, and its own spread.
    slow_s, fast_s : float
        Time constants of the two processes.
    slow_share : float
        Share of the variance that the slow process has.
    slot_s : float
        The slow process moves only at multiples of this; 0: always.
    pausing : float
        Share of traces with pauses.
    gap_s, pause_s : float
        Mean time between pauses, median over traces, and mean length of a pause.
    """

    spread: float
    spread_log_sd: float
    slow_s: float
    fast_s: float
    slow_share: float
    slot_s: float
    pausing: float
    gap_s: float
    pause_s: float


KINDS = {
    "cellular-varied": Kind(0.55, 0.50, 35.0, 2.0, 0.75, 0.0, 0.65, 80.0, 3.5),
    "wifi-varied": Kind(0.60, 0.35, 26.0, 3.5, 0.97, 0.0, 0.97, 36.0, 8.0),
    "satellite-varied": Kind(0.42, 0.50, 40.0, 1.5, 0.60, 15.0, 0.75, 60.0, 3.5),
}


def rates(kind: Kind, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Rates of one trace, of any mean.

    Parameters
    ----------
    kind : Kind
    count : int
        Steps of 0.1 s.
    rng : Generator

    Returns
    -------
    float64 array [count]
        All above 0.
    """
    spread = kind.spread * np.exp(rng.normal(0.0, kind.spread_log_sd))
    slow = _process(rng, count, kind.slow_s)
    if kind.slot_s:
        slot = round(kind.slot_s / STEP_S)
        slow = slow[np.arange(count) // slot * slot]
    fast = _process(rng, count, kind.fast_s)
    share = kind.slow_share
    rate = np.exp(spread * (np.sqrt(share) * slow + np.sqrt(1.0 - share) * fast))
    if rng.random() < kind.pausing:
        gap_s = kind.gap_s * np.exp(rng.normal(0.0, 0.7))
        at = rng.exponential(gap_s)
        while at < count * STEP_S:
            length = rng.exponential(kind.pause_s)
            rate[round(at / STEP_S) : round((at + length) / STEP_S)] *= _PAUSED
            at += length + rng.exponential(gap_s)
    result: np.ndarray[Any, Any] = rate
    return result


def _process(rng: np.random.Generator, count: int, constant_s: float) -> np.ndarray[Any, Any]:
    """First-order process of variance 1 with the given time constant, in equilibrium."""
    memory = float(np.exp(-STEP_S / constant_s))
    noise = rng.normal(0.0, np.sqrt(1.0 - memory**2), count)
    noise[0] = rng.normal()
    return np.array(list(accumulate(noise.tolist(), lambda last, new: new + memory * last)))
