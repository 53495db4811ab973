"""The form of a bar, and whether it was cleared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from data.netsim.runner import intervals
from data.results import Result
from pipelines.studies.bars.bench import Bench, Floats

MET = "met"


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
    value, low, high : float
        Mean over seeds, and its 95 % interval (Student's t).
    limit : float
    at_least, sure : bool
        As of `Bar`.
    verdict : str
        ``met``, or ``missed by`` so much.
    """

    key: str
    bar: str
    unit: str
    value: float
    low: float
    high: float
    limit: float
    at_least: bool
    sure: bool
    verdict: str


def cleared(bar: Bar, values: Floats) -> Cleared:
    """Judge a bar by its values, one for each seed."""
    found = intervals([{"x": float(value)} for value in values])["x"]
    value, low, high = (round(float(found[name]), 6) for name in ("mean", "lo", "hi"))
    counted = value if not bar.sure else low if bar.at_least else high
    missing = bar.limit - counted if bar.at_least else counted - bar.limit
    short = missing >= 0 if bar.sure else missing > 0
    unit = f" {bar.unit}" if bar.unit else ""
    verdict = f"missed by {missing:.3g}{unit}" if short else MET
    return Cleared(
        key=bar.key, bar=bar.says, unit=bar.unit, value=value, low=low, high=high,
        limit=bar.limit, at_least=bar.at_least, sure=bar.sure, verdict=verdict,
    )  # fmt: skip


def over_seeds(values: Floats, seeds: int) -> Floats:
    """Means of several values of each seed, which follow each other: float64 array [seeds]."""
    result: Floats = np.asarray(values).reshape(seeds, -1).mean(axis=1)
    return result
