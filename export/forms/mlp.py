"""Defines the form of a feed-forward network: trained in floats, run in integers (LiteFlow)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from export.fixed import limits
from export.forms.curve import Curve, curve_body, read_curve
from export.forms.dense import RAW, Dense, check_outputs, layer_body, read_layers, through
from export.ir import Ints, Verdicts, checked, verdicts
from export.reading import Malformed, integer
from features.spec import Feature

BODY = frozenset({"layers", "curve", "places"})
_TRIED = 4000
_HALVINGS = 33


@dataclass(frozen=True)
class Mlp:
    """Layers one after another.

    Attributes
    ----------
    layers : tuple of Dense
        The last one's sums are the scores.
    curve : Curve or None
        tanh, for layers that use it or the logistic function.
    places : int
        Fractional bits of the scores.
    """

    kind: ClassVar[str] = "mlp"
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    layers: tuple[Dense, ...]
    curve: Curve | None
    places: int

    @property
    def outputs(self) -> int:
        """Scores of the last layer."""
        return len(self.layers[-1].weights)

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        scores = through(self.layers, checked(x, self.features), self.curve)
        return verdicts(scores, self.labels, self.decision_threshold)


def body(form: Mlp) -> dict[str, Any]:
    """Layers and the table of tanh."""
    return {
        "layers": [layer_body(layer) for layer in form.layers],
        "curve": None if form.curve is None else curve_body(form.curve),
        "places": form.places,
    }


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Mlp:
    """A network from a document's parts."""
    curve = None if document["curve"] is None else read_curve(document["curve"], "curve")
    # Layers behind a tanh count on answers up to one: a larger one could overflow their sums.
    if curve is not None and curve.entries[-1] > 1 << curve.q:
        raise Malformed("curve: entries up to one were expected")
    layers = read_layers(document["layers"], "layers", len(features), RAW, curve)
    check_outputs(len(layers[-1].weights), labels, "layers")
    return Mlp(
        features,
        labels,
        decision_threshold,
        layers,
        curve,
        integer(document["places"], "places", 0, 62),
    )


def boundary_vectors(form: Mlp, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations on both sides of the border between classes and of each first-layer unit's zero.

    A border lies between any two observations that are answered differently; halving finds it.
    """
    low, high = limits(form.features)
    x = rng.integers(low, high, (_TRIED, len(low)), endpoint=True)
    classes = form.evaluate(x).classes
    order = np.argsort(classes, kind="stable")
    a, b = x[order], x[order[::-1]]
    differing = classes[order] != classes[order[::-1]]
    a, b = a[differing], b[differing]
    answered = form.evaluate(a).classes
    for _ in range(_HALVINGS):
        middle = (a + b) >> 1
        same = (form.evaluate(middle).classes == answered)[:, None]
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    return {"thresholds": np.concatenate([a, b]), "leaves": _kinks(form, x, low, high)}


def _kinks(form: Mlp, x: Ints, low: Ints, high: Ints) -> Ints:
    """Rows in which a unit of the first layer is as near to zero as one feature can take it."""
    first, found = form.layers[0], []
    for unit, weights in enumerate(first.weights):
        column = int(np.abs(np.array(weights) * (high - low)).argmax())
        if not weights[column]:
            continue
        rows = x[:: len(first.weights)].copy()
        rest = first.sums(rows)[:, unit] - rows[:, column] * weights[column]
        meets = np.clip(-rest // weights[column], low[column], high[column])
        for offset in (-1, 0, 1):
            rows = rows.copy()
            rows[:, column] = meets + offset
            found.append(rows)
    return np.concatenate(found) if found else x


def timed(form: Mlp, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from the features' ranges."""
    low, high = limits(form.features)
    return rng.integers(low, high, (rows, len(form.features)), endpoint=True)
