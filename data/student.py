"""Student's t for intervals, so that the core needs no statistics library."""

from __future__ import annotations

import math
from functools import cache

HALVINGS = 64
"""How often an interval of 1.6 is halved: more than the digits of a double."""


@cache
def quantile(coverage: float, degrees: int) -> float:
    """How many standard errors an interval of Student's t reaches to each side.

    For whole degrees of freedom the distribution is a finite sum (Abramowitz and Stegun,
    Handbook of Mathematical Functions, 26.7.3 and 26.7.4), which is solved by halving.

    Parameters
    ----------
    coverage : float
        Share of the distribution between ``-t`` and ``t``, above 0 and below 1.
    degrees : int
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        ``t``, in standard errors.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _between(middle, degrees) < coverage:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def _between(angle: float, degrees: int) -> float:
    """Probability that a value lies within ``sqrt(degrees) * tan(angle)`` of 0."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= k / (k + 1) * cosine * cosine
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
