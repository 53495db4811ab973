"""Fits the weights of a changed support vector machine to the unchanged one's scores."""

from __future__ import annotations

import dataclasses

import numpy as np

from export.exp_table import ONE_BITS
from export.forms.rbf import Rbf
from export.ir import Ints
from export.lower.prepare import Floats
from export.lower.rbf import integer_weights

RIDGE = 1e-6
"""Keeps the fit from answering rounding errors with huge weights."""


def refitted(form: Rbf, other: Rbf, start: Floats, x: Ints) -> Rbf:
    """``other`` with weights fitted to the scores of ``form``.

    Least squares on ``x`` and, since they are what the machine was trained on, on all support
    vectors of ``form``.

    Parameters
    ----------
    form : Rbf
    other : Rbf
        Its vectors and coordinates differ, its ``m`` weights don't matter.
    start : float64 array [m]
        Weights that the fit stays near to where ``x`` doesn't determine them.
    x : int64 array [N, d]
    """
    vectors, weights, _ = form.arrays
    unit = 2.0**form.shift
    rows = np.concatenate([form.observations(vectors, x[np.arange(len(vectors)) % len(x)]), x])
    at = np.array_split(form.coordinates(rows), 32)
    target = np.concatenate([form.kernels(part) @ weights for part in at]) / unit
    kernels = other.kernels(other.coordinates(rows)) / 2.0**ONE_BITS
    normal = kernels.T @ kernels + RIDGE * np.eye(len(start))
    step = np.linalg.solve(normal, kernels.T @ (target - kernels @ start))
    whole, shift = integer_weights(np.asarray(start + step, dtype=np.float64), form.bias / unit)
    return dataclasses.replace(
        other,
        weights=tuple(map(int, whole)),
        decision_threshold=_moved(form.decision_threshold, shift - form.shift),
        bias=_moved(form.bias, shift - form.shift),
        shift=shift,
    )


def _moved(value: int, places: int) -> int:
    """``value`` with more or fewer fractional bits, rounded down, within 62 bits."""
    moved = value << places if places >= 0 else value >> -places
    return max(-(2**62), min(2**62, moved))
