"""SBD: Ferlin et al., IEEE INFOCOM 2016 (the paper's [1]), with the statistics of RFC 8382.

Delays are summarised over base intervals of 350 ms; skewness, variability, key frequency and
loss of the two subflows are compared. The RTT stands in for the one-way delay, which a sender's
log doesn't have. The test whether there is a bottleneck at all is left out, as in section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.sbd.rules.pair import Pair, Subflow

BASE_US = 350_000
"""T of RFC 8382, section 2.2."""
OBSERVATIONS = 10
"""The paper classifies by the ten observations of the last 3.5 s."""
P_S, P_F, P_MAD, P_D, P_L, P_V = 0.15, 0.1, 0.1, 0.1, 0.05, 0.7
"""Thresholds recommended by RFC 8382, section 2.2."""


@dataclass(frozen=True)
class Summary:
    """Skewness in [-1, 1], mean absolute deviation (us), key frequency, loss share."""

    skew: float
    deviation_us: float
    frequency: float
    loss: float


def summarise(flow: Subflow, end_us: int) -> Summary | None:
    """Summary statistics over the observations that end at a time; ``None`` without samples.

    Skewness counts samples below minus above the long-term mean, variability is the mean
    distance from the previous interval's mean, and the key frequency the share of intervals
    whose mean crosses the band of P_V times the variability (RFC 8382, sections 3.2 and 3.3).
    """
    edges = end_us - BASE_US * np.arange(OBSERVATIONS, -1, -1)
    bounds = np.searchsorted(flow.time_us, edges, side="right")
    lengths = np.diff(bounds)
    full = np.flatnonzero(lengths)
    if full.size < 3:
        return None
    parts = [flow.rtt_us[bounds[i] : bounds[i + 1]].astype(np.float64) for i in full]
    means = np.array([part.mean() for part in parts])
    long_term = float(means.mean())
    samples = np.concatenate(parts)
    skew = float(((samples < long_term).sum() - (samples > long_term).sum()) / samples.size)
    reference = np.concatenate([means[:1], means[:-1]])
    spread = sum(float(np.abs(p - m).sum()) for p, m in zip(parts, reference, strict=True))
    deviation = spread / samples.size
    # Significant crossings of the mean: from beyond one edge of the band to beyond the other.
    side = np.where(
        means > long_term + P_V * deviation, 1, np.where(means < long_term - P_V * deviation, -1, 0)
    )
    outside = side[side != 0]
    crossings = int((np.diff(outside) != 0).sum()) if outside.size else 0
    first, last = np.searchsorted(flow.loss_us, [edges[0], edges[-1]], side="right")
    return Summary(skew, deviation, crossings / full.size, float(last - first) / samples.size)


def similar(a: Summary, b: Summary) -> bool:
    """Whether two subflows fall into one group (RFC 8382, section 3.3.1, for two flows)."""
    # With ten observations the frequency moves in steps of P_F itself: equal to it still passes.
    if abs(a.frequency - b.frequency) > P_F + 1e-9:
        return False
    if abs(a.deviation_us - b.deviation_us) > P_MAD * max(a.deviation_us, b.deviation_us):
        return False
    if max(a.loss, b.loss) > P_L:
        return abs(a.loss - b.loss) < P_D * max(a.loss, b.loss)
    return abs(a.skew - b.skew) < P_S


def judge(pair: Pair, windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Verdict at each window's end as shares 0 or 1; see the package's text."""
    out = np.zeros((len(windows), 2))
    for i, (_, end) in enumerate(windows):
        one, two = (summarise(flow, int(end)) for flow in pair)
        if one and two:
            out[i] = (1, 0) if similar(one, two) else (0, 1)
    return out
