"""Keeps fewer support vectors, and fits their weights again.

Weights of a machine with a large C are nearly all the same, so none can be left out for its
weight; but many vectors lie near others, and their kernels nearly in the span of the others'.
Those kept are chosen by pivoted Cholesky decomposition of the kernel matrix (Fine and Scheinberg,
JMLR 2001).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from export.exp_table import ONE_BITS
from export.forms.rbf import Rbf
from export.ir import Ints
from export.lower.prepare import Floats
from export.passes.refit import refitted

KINDS = frozenset({"rbf"})


def smaller(form: Rbf, vectors: int, x: Ints) -> Rbf:
    """Keep at most ``vectors`` support vectors, with weights for ``x`` (int64 array [N, d])."""
    if vectors >= len(form.vectors):
        return form
    chosen = _pivots(form.kernels(form.arrays[0]) / 2.0**ONE_BITS, vectors)
    kept = dataclasses.replace(form, vectors=tuple(form.vectors[i] for i in chosen))
    return refitted(form, kept, np.zeros(vectors), x)


def _pivots(kernels: Floats, count: int) -> list[int]:
    """Columns of a kernel matrix [N, N] that span it best, one after the other."""
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
