"""Fewer support vectors, their weights fitted again.

Weights of a machine with a large C are nearly all the same, so none can be left out for its
weight; but many vectors lie near others, and their kernels nearly in the span of the others'.
Chosen by pivoted Cholesky decomposition of the kernel matrix (Fine and Scheinberg, JMLR 2001).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from export.exp_table import ONE_BITS
from export.forms.rbf import Rbf
from export.ir import Ints
from export.lower.prepare import Floats
from export.lower.rbf import integer_weights

KINDS = frozenset({"rbf"})
RIDGE = 1e-6
"""Keeps the fit from answering rounding errors with huge weights."""


def smaller(form: Rbf, vectors: int, x: Ints) -> Rbf:
    """At most ``vectors`` support vectors.

    Their weights are those that come nearest to the form's scores (least squares) on ``x``
    (int64 [n, d]) and on all its support vectors.
    """
    if vectors >= len(form.vectors):
        return form
    at, weights, _ = form.arrays
    chosen = _pivots(form.kernels(at) / 2.0**ONE_BITS, vectors)
    kept = dataclasses.replace(form, vectors=tuple(form.vectors[i] for i in chosen))
    points = np.concatenate([at, form.coordinates(x)])
    target = np.concatenate([form.kernels(part) @ weights for part in np.array_split(points, 32)])
    kernels = kept.kernels(points) / 2.0**ONE_BITS
    normal = kernels.T @ kernels + RIDGE * np.eye(vectors)
    fitted = np.asarray(np.linalg.solve(normal, kernels.T @ (target / 2.0**form.shift)), np.float64)
    unit = 2.0**form.shift
    whole, shift = integer_weights(fitted, form.bias / unit)
    return dataclasses.replace(
        kept,
        weights=tuple(map(int, whole)),
        cut=_moved(form.cut, shift - form.shift),
        bias=_moved(form.bias, shift - form.shift),
        shift=shift,
    )


def _moved(value: int, places: int) -> int:
    """``value`` with more or fewer fractional bits, rounded down, within 62 bits."""
    moved = value << places if places >= 0 else value >> -places
    return max(-(2**62), min(2**62, moved))


def _pivots(kernels: Floats, count: int) -> list[int]:
    """Columns of a kernel matrix [n, n] that span it best, one after the other."""
    rest = np.ones(len(kernels))
    factor = np.zeros((len(kernels), count))
    chosen: list[int] = []
    for k in range(count):
        pivot = int(rest.argmax())
        chosen.append(pivot)
        column = kernels[:, pivot] - factor[:, :k] @ factor[pivot, :k]
        factor[:, k] = column / math.sqrt(max(rest[pivot], 1e-12))
        rest = np.maximum(rest - factor[:, k] ** 2, 0.0)
        rest[chosen] = -1.0
    return chosen
