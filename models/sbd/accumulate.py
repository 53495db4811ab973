"""One verdict from successive windows: log-odds that add up and fade.

``state = decay * state + temperature * (slope * logit(p) + offset)`` per window; the verdict is SB
from ``+limit`` on, NSB from ``-limit`` down, and otherwise undecided. Windows of one connection
repeat each other's evidence, which is what ``temperature`` < 1 makes up for; ``decay`` < 1 lets a
bottleneck that moves be seen. Four multiplications and additions per window: the same in C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Field

from data.strict import Strict
from models.stats.calibration import logit, sigmoid

DECAY_GRID = (0.5, 0.7, 0.8, 0.9)
"""Never 1: a state that doesn't fade couldn't follow a bottleneck that moves, which no data here
has to teach it. At 0.9 half of a window's weight is gone after seven."""
TEMPERATURE_GRID = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)

SB, NSB, UNDECIDED = 1, 0, -1


class VerdictSettings(Strict):
    """How window probabilities become verdicts; stands in the model's ``meta.json``.

    Attributes
    ----------
    slope, offset : float
        Platt calibration on the log-odds of the model's own probability.
    decay, temperature : float
        Memory and weight of evidence, both in (0, 1]; files call them ``forget`` and ``temper``.
    confidence : float
        Calibrated probability below which the answer is "don't know".
    bound : float, optional
        How many times the limit the state may be. Without it a long time of one bottleneck takes
        as many windows to be forgotten as they add up to.
    """

    slope: float = 1.0
    offset: float = 0.0
    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    decay: float = Field(1.0, gt=0, le=1, alias="forget")
    temperature: float = Field(1.0, gt=0, le=1, alias="temper")
    confidence: float = Field(0.9, ge=0.5, lt=1)
    bound: float | None = Field(None, ge=1, le=1e6)

    @property
    def most(self) -> float:
        """The largest state."""
        return math.inf if self.bound is None else self.bound * self.limit

    @property
    def limit(self) -> float:
        """The log-odds at which a verdict falls."""
        return math.log(self.confidence / (1 - self.confidence))


def evidence(probability: ArrayLike, verdicts: VerdictSettings) -> NDArray[np.float64]:
    """Calibrated log-odds of each window taken alone, shape (N,)."""
    return verdicts.slope * logit(probability) + verdicts.offset


def accumulate(
    log_odds: ArrayLike,
    group: NDArray[np.int64],
    decay: float,
    temperature: float,
    most: float = math.inf,
) -> NDArray[np.float64]:
    """Accumulated log-odds after each window.

    Parameters
    ----------
    log_odds : array_like, shape (N,)
        Calibrated log-odds per window, in order of connection and window.
    group : ndarray of int, shape (N,)
        Connection of each window; equal numbers lie side by side.
    decay, temperature : float
        See the module's text.
    most : float
        The largest state in either direction.

    Returns
    -------
    ndarray, shape (N,)
        What is known of the connection at the end of each window.
    """
    x = np.asarray(log_odds, dtype=np.float64) * temperature
    out = np.empty_like(x)
    state = 0.0
    previous = None
    for i in range(x.size):
        if group[i] != previous:
            state = 0.0
            previous = group[i]
        state = min(most, max(-most, decay * state + x[i]))
        out[i] = state
    return out


def decide(state: ArrayLike, limit: float) -> NDArray[np.int64]:
    """Verdict per accumulated state: 1 SB, 0 NSB, -1 undecided."""
    s = np.asarray(state, dtype=np.float64)
    return np.where(s >= limit, SB, np.where(s <= -limit, NSB, UNDECIDED)).astype(np.int64)


def last_of_each(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of the last row of each connection."""
    if group.size == 0:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.append(group[1:] != group[:-1], True)).astype(np.int64)


def fit(
    probability: ArrayLike,
    y: NDArray[np.int64],
    group: NDArray[np.int64],
    confidence: float,
    bound: float | None = None,
) -> VerdictSettings:
    """Calibrate and choose memory and temperature on out-of-sample probabilities.

    The Platt curve is fitted per window; ``decay`` and ``temperature`` minimise the log loss of the
    accumulated probability at the end of each connection.

    Parameters
    ----------
    probability, y, group : arrays, shape (N,)
        Out-of-sample P(SB), labels (1, 0), connections side by side.
    confidence : float
        Kept in the result.
    bound : float, optional
        Likewise. The other settings are fitted to connections whose bottleneck doesn't move, and
        so without it.
    """
    from models.stats.calibration import platt

    slope, offset = platt(logit(probability), y)
    x = slope * logit(probability) + offset
    last = last_of_each(group)
    truth = y[last]
    best = (math.inf, 1.0, 1.0)
    for decay, temperature in product(DECAY_GRID, TEMPERATURE_GRID):
        p = np.clip(sigmoid(accumulate(x, group, decay, temperature)[last]), 1e-6, 1 - 1e-6)
        loss = -(truth * np.log(p) + (1 - truth) * np.log(1 - p))
        best = min(best, (float(loss.mean()), decay, temperature))
    return VerdictSettings(
        slope=slope,
        offset=offset,
        decay=best[1],
        temperature=best[2],
        confidence=confidence,
        bound=bound,
    )


def verdicts_of(calibration: Mapping[str, Any], accumulation: Mapping[str, Any]) -> VerdictSettings:
    """Settings of a model's verdicts as they stand in its ``meta.json``."""
    known = {field.alias or name for name, field in VerdictSettings.model_fields.items()}
    keys = {k: v for k, v in {**calibration, **accumulation}.items() if k in known}
    return VerdictSettings.parse(keys, "meta.json")


def in_meta(verdicts: VerdictSettings, decimals: int | None = None) -> dict[str, Any]:
    """The same settings as they stand there; ``decimals`` of the calibration, all by default."""
    slope, offset = verdicts.slope, verdicts.offset
    if decimals is not None:
        slope, offset = round(slope, decimals), round(offset, decimals)
    return {
        "calibration": {"kind": "platt", "slope": slope, "offset": offset},
        "accumulation": verdicts.model_dump(
            include={"decay", "temperature", "confidence", "bound"}, exclude_none=True
        ),
    }
