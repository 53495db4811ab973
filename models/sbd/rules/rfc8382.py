"""SBD: Ferlin et al., IEEE INFOCOM 2016 (the paper's [1]), with the statistics of RFC 8382.

Delays are summarised over base intervals of 350 ms; key frequency, variability, and skewness or
loss of the two subflows are compared after each. The RTT stands in for the one-way delay, which a
sender's log doesn't have. The test whether there is a bottleneck at all is left out, as in
section 5.1 of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from features.rfc8382 import INTERVAL_US, summary_statistics
from models.sbd.rules.pair import Pair, Subflow

HISTORY = 50
"""Base intervals that all statistics look back (RFC 8382's N; as many as there are)."""
OBSERVATIONS, TOGETHER = 10, 5
"""A decision takes ten observations, one per base interval (3.5 s); subflows are held for sharing
when at least five of them put the two in one group. The ten are in section 5.1; the five is from a
public implementation for the MPTCP kernel, the INFOCOM paper's full text was not at hand."""
P_S, P_F, P_MAD, P_D, P_L = 0.1, 0.1, 0.1, 0.1, 0.1
"""Thresholds as public implementations have them; RFC 8382 section 2.2 has P_S = 0.15."""


@dataclass(frozen=True)
class Summary:
    """Skewness in [-1, 1], mean absolute deviation (us), key frequency, share of lost packets."""

    skew: float
    deviation_us: float
    frequency: float
    loss: float


def summaries(flow: Subflow, start_us: int, end_us: int) -> NDArray[np.float64]:
    """The four statistics after each base interval from ``start_us`` on, [intervals, 4]."""
    return np.stack(
        summary_statistics(
            flow.time_us,
            flow.rtt_us.astype(np.float64),
            flow.retransmit_us,
            start_us,
            end_us,
            m=HISTORY,
            n=HISTORY,
        ),
        axis=1,
    )


def similar(a: Summary, b: Summary) -> bool:
    """Whether one observation puts two subflows into one group: frequency, spread, then shape."""
    if abs(a.frequency - b.frequency) >= P_F:
        return False
    high, low = max(a.deviation_us, b.deviation_us), min(a.deviation_us, b.deviation_us)
    if high > 0 and high - low >= P_MAD * high:
        return False
    if max(a.loss, b.loss) >= P_L:
        return abs(a.loss - b.loss) < P_D * max(a.loss, b.loss)
    return abs(a.skew - b.skew) < P_S


def judge(pair: Pair, windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Verdict of the ten observations up to each window's end, as shares 0 or 1."""
    start = max(int(flow.time_us[0]) for flow in pair)
    one, two = (summaries(flow, start, int(windows.max()) + 1) for flow in pair)
    together = np.array([similar(Summary(*a), Summary(*b)) for a, b in zip(one, two, strict=True)])
    out = np.zeros((len(windows), 2))
    for i, (_, end) in enumerate(windows):
        stop = int((end - start) // INTERVAL_US)
        seen = together[max(stop - OBSERVATIONS, 0) : max(stop, 0)]
        if seen.size:
            # Early on there are fewer than ten: half of what there is, then.
            same = seen.sum() >= TOGETHER * seen.size / OBSERVATIONS
            out[i] = (1, 0) if same else (0, 1)
    return out
