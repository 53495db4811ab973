"""The form of a bar, and whether it was cleared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from data.netsim.runner import intervals
from data.results import Result
from pipelines.studies.bars.bench import Bench, Floats

MET = "met"
IN_MEAN = "met in the mean"
"""Verdict of a bar within the interval of what was measured, on the right side of its mean."""


@dataclass(frozen=True)
class Bar:
    """What an agent has to reach.

    Attributes
    ----------
    key : str
        By which ``--only`` finds it.
    says : str
        What is measured and compared with what.
    unit : str
        Unit of the value; "" for a ratio or a share.
    limit : float
        The bar.
    measure : callable
        Takes the bench, returns a value for each seed, float64 array [seeds].
    at_least : bool
        Whether the value has to be at least the limit, or at most.
    sure : bool
        Whether the whole 95 % interval has to lie beyond the limit, or the mean alone.
    """

    key: str
    says: str
    unit: str
    limit: float
    measure: Callable[[Bench], Floats]
    at_least: bool = True
    sure: bool = False


class Cleared(Result):
    """A bar with what was measured; as ``--json`` prints it.

    Attributes
    ----------
    key, bar, unit : str
    value, low, high : float or None
        Mean over seeds, and its 95 % interval (Student's t); None if a seed has no value.
    limit : float
    at_least, sure : bool
        As of `Bar`.
    verdict : str
        ``met``, ``met in the mean``, ``missed by`` so much, or ``missed:`` and why.
    """

    key: str
    bar: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    limit: float
    at_least: bool
    sure: bool
    verdict: str


def cleared(bar: Bar, values: Floats) -> Cleared:
    """Judge a bar by its values, one for each seed."""
    found = interval(values, 6)
    value, low, high = found or (None, None, None)
    if found is None:
        lacking = int((~np.isfinite(values)).sum())
        verdict = f"missed: no value in {lacking} of {len(values)} seeds"
    else:
        verdict = _verdict(bar, *found)
    return Cleared(
        key=bar.key, bar=bar.says, unit=bar.unit, value=value, low=low, high=high,
        limit=bar.limit, at_least=bar.at_least, sure=bar.sure, verdict=verdict,
    )  # fmt: skip


def _verdict(bar: Bar, value: float, low: float, high: float) -> str:
    counted = value if not bar.sure else low if bar.at_least else high
    missing = bar.limit - counted if bar.at_least else counted - bar.limit
    unit = f" {bar.unit}" if bar.unit else ""
    if missing >= 0 if bar.sure else missing > 0:
        return f"missed by {missing:.3g}{unit}"
    unsure = low < bar.limit if bar.at_least else high > bar.limit
    return IN_MEAN if unsure else MET


def interval(values: Floats, digits: int) -> tuple[float, float, float] | None:
    """Mean over seeds and its 95 % interval, rounded; None if a seed has no value."""
    if not np.isfinite(values).all():
        return None
    found = intervals([{"x": float(value)} for value in values])["x"]
    mean, low, high = (round(float(found[name]), digits) for name in ("mean", "lo", "hi"))
    return mean, low, high


def over_seeds(values: Floats, seeds: int) -> Floats:
    """Means of several values of each seed, which follow each other: float64 array [seeds]."""
    result: Floats = np.asarray(values).reshape(seeds, -1).mean(axis=1)
    return result
