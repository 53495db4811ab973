"""Defines the form of a linear model: a weighted sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.ir import Ints, Verdicts, above_threshold, checked
from export.reading import Malformed, integer, integers
from features.spec import Feature

BODY = frozenset({"weights", "bias", "shift"})


@dataclass(frozen=True)
class Linear:
    """``weights . x + bias`` in Q``shift``.

    ``weights`` fit 32 bits and no 32-bit observation overflows 64 bits.
    """

    kind: ClassVar[str] = "linear"
    outputs: ClassVar[int] = 1
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    weights: tuple[int, ...]
    bias: int
    shift: int

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        weights = np.array(self.weights, dtype=np.int64)
        return above_threshold(
            checked(x, self.features) @ weights + self.bias, self.decision_threshold
        )


def body(form: Linear) -> dict[str, Any]:
    """Weights, bias and their binary places."""
    return {"weights": list(form.weights), "bias": form.bias, "shift": form.shift}


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Linear:
    """A linear form from a document's parts."""
    if len(labels) != 2:
        raise Malformed("labels: two names were expected")
    weights = integers(document["weights"], "weights", INT32_MIN + 1, INT32_MAX)
    bias = integer(document["bias"], "bias", -(2**62), 2**62)
    shift = integer(document["shift"], "shift", 0, 62)
    if len(weights) != len(features):
        raise Malformed("weights: one per feature was expected")
    if sum(map(abs, weights)) * 2**31 + abs(bias) >= 2**63:
        raise Malformed("weights: the sum could overflow 64 bits")
    return Linear(features, labels, decision_threshold, weights, bias, shift)


def boundary_vectors(form: Linear, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations on both sides of the decision threshold, as near as one feature takes them."""
    low, high = limits(form.features)
    x = rng.integers(low, high, (500, len(form.features)), endpoint=True)
    out = []
    for column, weight in enumerate(form.weights):
        if not weight:
            continue
        rest = form.evaluate(x).scores - x[:, column] * weight
        meets = np.clip((form.decision_threshold - rest) // weight, INT32_MIN + 1, INT32_MAX - 1)
        for offset in (-1, 0, 1):
            row = x.copy()
            row[:, column] = meets + offset
            out.append(row)
    return {"thresholds": np.concatenate(out) if out else x}


def timed(form: Linear, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from the features' ranges."""
    low, high = limits(form.features)
    return rng.integers(low, high, (rows, len(form.features)), endpoint=True)
