"""Calibration turns scores into probabilities; it is kept as numbers, never as a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

CLIP = 0.005
"""Probabilities are kept this far from 0 and 1: a tree's pure leaf is no proof."""

Floats = NDArray[np.float64]


def logit(probability: ArrayLike) -> Floats:
    """Log-odds of probabilities, clipped to [CLIP, 1 - CLIP]."""
    p = np.clip(np.asarray(probability, dtype=np.float64), CLIP, 1 - CLIP)
    return np.asarray(np.log(p / (1 - p)), dtype=np.float64)


def sigmoid(x: ArrayLike) -> Floats:
    """Probability of log-odds."""
    value = np.clip(np.asarray(x, dtype=np.float64), -500, 500)
    return np.asarray(1 / (1 + np.exp(-value)), dtype=np.float64)


def platt(score: ArrayLike, y: NDArray[np.int64]) -> tuple[float, float]:
    """Slope and offset of the logistic curve through scores (Platt 1999).

    Parameters
    ----------
    score : float array [N]
        Log-odds or decision values from models that haven't seen these rows.
    y : int array [N]
        1 for SB, 0 for NSB.

    Returns
    -------
    (float, float)
        ``P(SB) = sigmoid(slope * score + offset)``; the slope is never negative.
    """
    from scipy.optimize import minimize

    s = np.asarray(score, dtype=np.float64)
    positives = int(y.sum())
    negatives = y.size - positives
    if not positives or not negatives:
        return 1.0, 0.0
    # Platt's targets: a little inside 0 and 1, which is what keeps the slope finite.
    target = np.where(y == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        z = parameters[0] * s + parameters[1]
        value = np.logaddexp(0, z) - target * z
        error = sigmoid(z) - target
        return float(value.mean()), np.array([(error * s).mean(), error.mean()])

    found = minimize(
        loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)]
    )
    return float(found.x[0]), float(found.x[1])


def isotonic(score: ArrayLike, y: NDArray[np.int64]) -> dict[str, list[float]]:
    """Isotonic curve through scores, as its corner points ``{"x": [...], "y": [...]}``."""
    from sklearn.isotonic import IsotonicRegression

    fit = IsotonicRegression(y_min=CLIP, y_max=1 - CLIP, out_of_bounds="clip")
    fit.fit(np.asarray(score, dtype=np.float64), y)
    return {"x": fit.X_thresholds_.tolist(), "y": fit.y_thresholds_.tolist()}


def apply_isotonic(curve: dict[str, list[float]], score: ArrayLike) -> Floats:
    """Probability of scores under an isotonic curve."""
    x = np.asarray(score, dtype=np.float64)
    return np.asarray(np.interp(x, curve["x"], curve["y"]), dtype=np.float64)


def reliability(probability: ArrayLike, y: NDArray[np.int64], bins: int = 10) -> dict[str, Any]:
    """Reliability diagram, Brier score and expected calibration error.

    Returns
    -------
    dict
        ``bins``: ``[{low, high, mean_probability, share_sb, windows}]`` (empty ones left out),
        ``brier``, ``ece``, ``log_loss``.
    """
    p = np.asarray(probability, dtype=np.float64)
    edges = np.linspace(0, 1, bins + 1)
    index = np.clip(np.digitize(p, edges[1:-1]), 0, bins - 1)
    rows = []
    error = 0.0
    for b in range(bins):
        inside = index == b
        n = int(inside.sum())
        if n:
            mean, share = float(p[inside].mean()), float(y[inside].mean())
            error += n / p.size * abs(mean - share)
            rows.append(
                {
                    "low": float(edges[b]),
                    "high": float(edges[b + 1]),
                    "mean_probability": mean,
                    "share_sb": share,
                    "windows": n,
                }
            )
    safe = np.clip(p, CLIP, 1 - CLIP)
    loss = -(y * np.log(safe) + (1 - y) * np.log(1 - safe))
    return {
        "bins": rows,
        "brier": float(((p - y) ** 2).mean()),
        "ece": error,
        "log_loss": float(loss.mean()),
    }
