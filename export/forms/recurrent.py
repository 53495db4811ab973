"""Defines the form of recurrent networks: one GRU or LSTM cell and the layers on top of it.

Gates as ONNX defines them: a GRU's are update, reset, new; an LSTM's input, output, forget, new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.forms.curve import Curve, curve_body, read_curve
from export.forms.dense import (
    RAW,
    Dense,
    check_outputs,
    layer_body,
    read_layer,
    read_layers,
    through,
)
from export.ir import Ints, Verdicts, checked, verdicts
from export.reading import Malformed, integer
from features.spec import Feature

BODY = frozenset({"inputs", "hidden", "reset_after", "head", "curve", "places"})
GATES = {"gru": 3, "lstm": 4}
MOST_UNITS = 128
_STEPS = 400


@dataclass(frozen=True)
class Recurrent:
    """A cell and its head. Observations are one sequence: each answer depends on all before it.

    States, gates and what goes into them have ``curve.q`` fractional bits.

    Attributes
    ----------
    kind : str
        gru or lstm.
    inputs, hidden : Dense
        Weights of the observation and of the last output, [gates * units] rows, without
        activation; an observation's and a state's sums are shifted each by itself, then added.
    reset_after : bool
        GRU: the reset gate acts on the sums of the hidden state (``linear_before_reset`` of
        ONNX), else on the hidden state itself.
    head : tuple of Dense
        Over the cell's output; the last one's sums are the scores.
    curve : Curve
        tanh, with one bit more of input than of output.
    places : int
        Fractional bits of the scores.
    """

    kind: str
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    inputs: Dense
    hidden: Dense
    reset_after: bool
    head: tuple[Dense, ...]
    curve: Curve
    places: int

    @property
    def outputs(self) -> int:
        """Scores of the last layer."""
        return len(self.head[-1].weights)

    @property
    def units(self) -> int:
        """Width of the state."""
        return len(self.hidden.weights[0])

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d]), from the zero state."""
        given = self.inputs.answer(checked(x, self.features), None)
        out = np.zeros((len(x), self.units), dtype=np.int64)
        h, c = np.zeros((2, 1, self.units), dtype=np.int64)
        step = self._gru if self.kind == "gru" else self._lstm
        for row in range(len(x)):
            h, c = step(given[row : row + 1], h, c)
            out[row] = h[0]
        scores = through(self.head, out, self.curve)
        return verdicts(scores, self.labels, self.decision_threshold)

    def _gru(self, given: Ints, h: Ints, c: Ints) -> tuple[Ints, Ints]:
        n, q = self.units, self.curve.q
        half, one = 1 << (q - 1), 1 << q
        kept = self.hidden.answer(h, None)
        gates = self.curve.sigmoid(given[:, : 2 * n] + kept[:, : 2 * n])
        update, reset = gates[:, :n], gates[:, n:]
        if self.reset_after:
            past = (reset * kept[:, 2 * n :] + half) >> q
        else:
            past = self.hidden.answer((reset * h + half) >> q, None)[:, 2 * n :]
        new = self.curve.tanh(given[:, 2 * n :] + past)
        return ((one - update) * new + update * h + half) >> q, c

    def _lstm(self, given: Ints, h: Ints, c: Ints) -> tuple[Ints, Ints]:
        n, q = self.units, self.curve.q
        half = 1 << (q - 1)
        sums = given + self.hidden.answer(h, None)
        gates = self.curve.sigmoid(sums[:, : 3 * n])
        entry, exit_, forget = gates[:, :n], gates[:, n : 2 * n], gates[:, 2 * n :]
        new = self.curve.tanh(sums[:, 3 * n :])
        c = np.clip((forget * c + entry * new + half) >> q, -INT32_MAX, INT32_MAX)
        return (exit_ * self.curve.tanh(c) + half) >> q, c


def body(form: Recurrent) -> dict[str, Any]:
    """Cell, head and the table of tanh."""
    return {
        "inputs": layer_body(form.inputs),
        "hidden": layer_body(form.hidden),
        "reset_after": form.reset_after,
        "head": [layer_body(layer) for layer in form.head],
        "curve": curve_body(form.curve),
        "places": form.places,
    }


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Recurrent:
    """A recurrent network from a document's parts."""
    kind, curve = document["kind"], read_curve(document["curve"], "curve")
    one = 1 << curve.q
    # With more than 24 bits a product of a gate and a clipped sum could leave 64.
    if curve.places != curve.q + 1 or curve.q > 24 or curve.entries[-1] > one:
        raise Malformed("curve: up to one, with one bit more of input, 24 at most, was expected")
    inputs = read_layer(document["inputs"], "inputs", len(features), RAW)
    units = len(inputs.weights) // GATES[kind]
    if not 1 <= units <= MOST_UNITS:
        raise Malformed(f"inputs: {GATES[kind]} rows for each of 1 to {MOST_UNITS} units expected")
    hidden = read_layer(document["hidden"], "hidden", units, one)
    rows = {len(inputs.weights), len(hidden.weights), GATES[kind] * units}
    if len(rows) != 1 or {inputs.activation, hidden.activation} != {"identity"}:
        raise Malformed("inputs and hidden: as many rows each, without activation, were expected")
    reset_after = document["reset_after"]
    if not isinstance(reset_after, bool) or (reset_after and kind != "gru"):
        raise Malformed("reset_after: true or false, true for a gru alone, was expected")
    head = read_layers(document["head"], "head", units, one, curve)
    check_outputs(len(head[-1].weights), labels, "head")
    places = integer(document["places"], "places", 0, 62)
    return Recurrent(
        kind, features, labels, decision_threshold, inputs, hidden, reset_after, head, curve, places
    )


def boundary_vectors(form: Recurrent, rng: np.random.Generator) -> dict[str, Ints]:
    """Sequences that fill the state: held ends of the ranges and of 32 bits, and slow walks."""
    return {"sequences": sequences(form.features, rng)}


def sequences(features: tuple[Feature, ...], rng: np.random.Generator) -> Ints:
    """Observations one after the other: held ends of the ranges and of 32 bits, and slow walks."""
    low, high = limits(features)
    ends = [low, high, np.full(len(low), INT32_MIN), np.full(len(low), INT32_MAX), low]
    held = np.repeat(np.stack(ends), _STEPS // 4, axis=0)
    steps = rng.normal(0, 0.05, (_STEPS, len(low))) * (high - low)
    walk = np.clip((low + high) / 2 + np.cumsum(steps, axis=0), low, high).astype(np.int64)
    return np.concatenate([held, walk])


def timed(form: Recurrent, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from the features' ranges."""
    low, high = limits(form.features)
    return rng.integers(low, high, (rows, len(form.features)), endpoint=True)
