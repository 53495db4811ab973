"""Explicit random streams: L'Ecuyer's MRG32k3a (Operations Research 47(1), 1999).

Every product stays below 2**63, so that compiled and interpreted runs agree bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from data.netsim.jit import compiled

_M1 = 4294967087
_M2 = 4294944443
_SCALE = 1.0 / 4294967088.0


def streams(seed: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """State of ``count`` independent streams.

    Returns
    -------
    int64 array [count, 6]
    """
    words = np.random.SeedSequence(seed).generate_state(count * 6, np.uint64).reshape(count, 6)
    state = np.empty((count, 6), np.int64)
    state[:, :3] = words[:, :3] % (_M1 - 1) + 1
    state[:, 3:] = words[:, 3:] % (_M2 - 1) + 1
    return state


@compiled
def uniform(rng: Any, stream: int) -> float:
    """Next number of a stream, in (0, 1)."""
    a = (1403580 * rng[stream, 1] - 810728 * rng[stream, 0]) % _M1
    rng[stream, 0] = rng[stream, 1]
    rng[stream, 1] = rng[stream, 2]
    rng[stream, 2] = a
    b = (527612 * rng[stream, 5] - 1370589 * rng[stream, 3]) % _M2
    rng[stream, 3] = rng[stream, 4]
    rng[stream, 4] = rng[stream, 5]
    rng[stream, 5] = b
    difference = a - b
    if difference <= 0:
        difference += _M1
    return float(difference * _SCALE)


@compiled
def exponential(rng: Any, stream: int, mean: float) -> float:
    """Exponentially distributed number with the given mean."""
    return -mean * math.log(uniform(rng, stream))


@compiled
def weibull(rng: Any, stream: int, scale: float, power: float) -> float:
    """Weibull-distributed number; ``power`` is one over the shape."""
    return float(scale * (-math.log(uniform(rng, stream))) ** power)
