"""Thresholds of decision values, for estimators that have no probability of their own."""

from __future__ import annotations

import math

from export.lower.prepare import Prepared


def margin_threshold(prepared: Prepared) -> float:
    """The decision value above which the probability is above the threshold.

    Without a calibrator the probability is the logistic function of the decision value, which
    for margins without one of their own (``LinearSVC``) puts the threshold 0.5 at 0.
    """
    if prepared.calibrator is not None:
        return prepared.output_threshold(-1e6, 1e6)
    if not 0 < prepared.threshold < 1:
        return math.inf if prepared.threshold >= 1 else -math.inf
    return math.log(prepared.threshold / (1 - prepared.threshold))
