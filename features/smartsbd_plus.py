"""Scale-free features: the second family, made to hold under conditions never trained on.

Everything derives from queueing delays (RTT less the smallest RTT) in units of themselves, from
ranks, correlations and coincidences. No feature reveals absolute RTTs, their ratio, or a rate, so
none can betray the set-up. All are symmetric: it doesn't matter which subflow is WiFi.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from features.arrays import Float
from features.spec import Feature
from features.windows import Window

SCALE = 1 << 16

_RFC = "RFC 8382 section 3.2"
_ISSUE = "scale-free counterpart of smartsbd.txt section 3.2"


def _f(name: str, low: float, high: float, doc: str, source: str = _ISSUE) -> Feature:
    return Feature(name, "1", low, high, SCALE, source, doc)


FEATURES: tuple[Feature, ...] = (
    _f("Queue_Diff", 0, 2, "difference of the mean queueing delays over their mean"),
    _f("Queue_Abs_Diff", 0, 2, "mean distance of the queueing delays over their mean"),
    _f("Queue_Mean_LogRatio", 0, 4, "|ln| of the ratio of mean queueing delays"),
    _f("Queue_SD_LogRatio", 0, 4, "|ln| of the ratio of their standard deviations"),
    _f("Queue_P10_LogRatio", 0, 4, "|ln| of the ratio of their 10th percentiles"),
    _f("Queue_P50_LogRatio", 0, 4, "|ln| of the ratio of their medians"),
    _f("Queue_P95_LogRatio", 0, 4, "|ln| of the ratio of their 95th percentiles"),
    _f("Queue_KS", 0, 1, "Kolmogorov-Smirnov distance of their distributions"),
    _f("Corr", -1, 1, "correlation of the RTT series"),
    _f("Corr_Rank", -1, 1, "rank correlation of the RTT series"),
    _f("Corr_Low", -1, 1, "correlation of the moving averages over 6 larger min RTTs"),
    _f("Corr_High", -1, 1, "correlation of what the moving averages leave"),
    _f("Corr_Diff", -1, 1, "correlation of the changes over one larger min RTT"),
    _f("Lag_Corr", -1, 1, "largest correlation at lags within the difference of the min RTTs"),
    _f("Lag_Corr_High", -1, 1, "the same of what the moving averages leave"),
    _f("Lag_Corr_Diff", -1, 1, "the same of the changes over one larger min RTT"),
    _f("Concordance", -1, 1, "Lin's concordance of the queueing delays"),
    _f("Lag_Concordance", -1, 1, "largest concordance at those lags"),
    _f("Coherence_Low", 0, 1, "coherence below one cycle per 16 larger min RTTs"),
    _f("InPhase_Low", -1, 1, "in-phase part of that coherence"),
    _f("Coherence_Mid", 0, 1, "coherence from one cycle per 16 to one per 4 larger min RTTs"),
    _f("InPhase_Mid", -1, 1, "in-phase part of that coherence"),
    _f("Z_DTWD", 0, 2, "banded DTWD of the z-normalised RTT series, per root of their length"),
    _f("Queue_DTWD", 0, 4, "banded DTWD of the queueing delays over their mean, likewise"),
    _f("Residual", 0, 1, "variance of the difference over the sum of variances, best lag"),
    _f("Full_Overlap", 0, 1, "overlap of the times when each queue is in its highest fifth"),
    _f("Drained_Overlap", 0, 1, "overlap of the times when each queue is in its lowest fifth"),
    _f("Drain_Match", -1, 1, "queue drains of both that coincide, beyond chance"),
    _f("Loss_Match", 0, 1, "congestion episodes of one that begin near one of the other's"),
    _f("Loss_Excess", -1, 1, "the same, beyond chance"),
    _f("Rtx_Excess", -1, 1, "retransmission bursts that coincide, beyond chance"),
    _f("Congested_Overlap", 0, 1, "overlap of the congested times"),
    _f("Congested_Corr", -1, 1, "correlation of the congestion states"),
    _f("Other_Queue_At_Loss", 0, 1, "rank of a queue when the other subflow loses; 1/2 if never"),
    _f("Long_Concordance", -1, 1, "Lag_Concordance over this window and up to 7 before it"),
    _f("Long_Corr", -1, 1, "Corr over the same time"),
    _f("Long_Corr_High", -1, 1, "Corr_High over the same time"),
    _f("Long_Queue_KS", 0, 1, "Queue_KS over the same time"),
    _f("Long_Queue_P50_LogRatio", 0, 4, "Queue_P50_LogRatio over the same time"),
    _f("Long_Queue_P95_LogRatio", 0, 4, "Queue_P95_LogRatio over the same time"),
    _f("Skew_Diff", 0, 2, "difference of skew_est", _RFC),
    _f("Var_LogRatio", 0, 4, "|ln| of the ratio of var_est", _RFC),
    _f("Freq_Diff", 0, 1, "difference of freq_est", _RFC),
    _f("Loss_Diff", 0, 2, "difference of pkt_loss over its mean; 0 if none is lost", _RFC),
)


def compute(windows: Sequence[Window]) -> Float:
    """All features of many windows.

    Parameters
    ----------
    windows : sequence of Window
        Windows of one connection or of many.

    Returns
    -------
    float64 array [len(windows), len(FEATURES)]
        Columns as :data:`FEATURES`, finite, clipped to their ranges.
    """
    # Code that only asks what the features are doesn't wait for the compiler's library.
    from features.smartsbd_plus_window import values

    rows = [[found[feature.name] for feature in FEATURES] for found in map(values, windows)]
    table = np.array(rows).reshape(-1, len(FEATURES))
    return np.asarray(np.clip(table, [f.low for f in FEATURES], [f.high for f in FEATURES]))
