"""Defines the form of a function of one feature as a table, such as Nuwa's tanh.

The tanh is that of nuwa.txt §IV.B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.forms.curve import Curve, curve_body, read_curve
from export.ir import Ints, Verdicts, above_threshold, checked
from export.reading import Malformed
from features.spec import Feature

BODY = frozenset({"curve"})
MOST_NEAR = 1 << 15


@dataclass(frozen=True)
class Table:
    """The score is the function's value in Q``curve.q``."""

    kind: ClassVar[str] = "lut"
    outputs: ClassVar[int] = 1
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    curve: Curve

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, 1])."""
        return above_threshold(
            self.curve.at(checked(x, self.features)[:, 0]), self.decision_threshold
        )


def body(form: Table) -> dict[str, Any]:
    """The table."""
    return {"curve": curve_body(form.curve)}


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Table:
    """A table from a document's parts."""
    if len(labels) != 2 or len(features) != 1:
        raise Malformed("labels and features: two names and one feature were expected")
    return Table(features, labels, decision_threshold, read_curve(document["curve"], "curve"))


def boundary_vectors(form: Table, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations around every entry's place, of both signs, and around the table's end."""
    curve = form.curve
    steps = np.arange(len(curve.entries))
    chosen = steps if len(steps) <= MOST_NEAR else np.sort(rng.choice(steps, MOST_NEAR, False))
    places = [(int(i) << (curve.frac + curve.down)) // curve.mul for i in chosen] + [curve.limit]
    around = np.array(places)[:, None] + np.arange(-1, 2)
    x = np.concatenate([around.ravel(), -around.ravel()])
    return {"thresholds": np.clip(x, INT32_MIN, INT32_MAX)[:, None]}


def timed(form: Table, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from the feature's range."""
    low, high = limits(form.features)
    return rng.integers(low, high, (rows, 1), endpoint=True)
