"""The one-threshold baseline: plain correlation of the two subflows' RTT over the window."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from models.stats.calibration import sigmoid

SHARPNESS = 10.0
"""Slope of the sigmoid that turns the distance from the threshold into a score; it changes no
verdict and is calibrated like every other model's."""


class Threshold:
    """SB if the only feature exceeds the threshold that is best on the training rows."""

    def __init__(self) -> None:
        self.threshold = 0.5

    def fit(self, x: NDArray[np.float64], y: NDArray[np.int64]) -> Self:
        """Choose the threshold of the highest training accuracy, midway in its gap.

        Parameters
        ----------
        x : float64 array [N, 1]
            Correlation per window.
        y : int array [N]
            1 for SB, 0 for NSB.
        """
        order = np.argsort(x[:, 0], kind="stable")
        value, label = x[order, 0], y[order]
        # right[i]: hits when the i smallest values are called NSB.
        right = np.concatenate([[0], np.cumsum(1 - label)]) + label.sum()
        right = right - np.concatenate([[0], np.cumsum(label)])
        usable = np.concatenate([[True], value[1:] > value[:-1], [True]])
        i = int(np.flatnonzero(usable)[np.argmax(right[usable])])
        low = value[max(i - 1, 0)]
        high = value[min(i, value.size - 1)]
        self.threshold = float((low + high) / 2)
        return self

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score per row, float64 array [N, 2]: NSB, SB."""
        p = sigmoid(SHARPNESS * (x[:, 0] - self.threshold))
        return np.stack([1 - p, p], axis=1)

    def predict(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """1 if SB, int64 array [N]."""
        return (x[:, 0] > self.threshold).astype(np.int64)
