"""Defines a layer of integers, which feed-forward and recurrent networks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from export.fixed import INT32_MAX
from export.forms.curve import Curve
from export.ir import Ints
from export.reading import Malformed, integer, integers, listed

ACTIVATIONS = frozenset({"identity", "relu", "sigmoid", "tanh"})
CURVED = frozenset({"sigmoid", "tanh"})
RAW = 1 << 31
"""Bound of the absolute value of an observation, and of what a layer answers at most."""
MAX_WIDTH = 1024
MAX_LAYERS = 16
_KEYS = {"weights", "biases", "shift", "activation"}


@dataclass(frozen=True)
class Dense:
    """``activation(clip((weights . x + biases) >> shift))``; no observation overflows the sums.

    Attributes
    ----------
    weights : tuple of tuple of int
        [outputs][inputs], 32 bits each.
    biases : tuple of int
        [outputs], with the half that makes the shift round.
    shift : int
        The shift is arithmetic, as every compiler of the kernel has it.
    activation : str
        Of :data:`ACTIVATIONS`. Its input is clipped to 32 bits, symmetrically.
    """

    weights: tuple[tuple[int, ...], ...]
    biases: tuple[int, ...]
    shift: int
    activation: str

    @cached_property
    def _arrays(self) -> tuple[Ints, Ints]:
        return np.array(self.weights, dtype=np.int64), np.array(self.biases, dtype=np.int64)

    def sums(self, x: Ints) -> Ints:
        """``weights . x + biases``, unshifted: int64 array [N, inputs] -> [N, outputs]."""
        weights, biases = self._arrays
        return np.asarray(x @ weights.T + biases)

    def answer(self, x: Ints, curve: Curve | None) -> Ints:
        """The layer's activations within 32 bits: int64 array [N, inputs] -> [N, outputs]."""
        z: Ints = np.clip(self.sums(x) >> self.shift, -INT32_MAX, INT32_MAX)
        if self.activation == "relu":
            return np.asarray(np.maximum(z, 0))
        if self.activation in CURVED:
            if curve is None:
                raise ValueError(f"{self.activation} needs a table")
            return curve.tanh(z) if self.activation == "tanh" else curve.sigmoid(z)
        return z

    def bound(self, curve: Curve | None) -> int:
        """Bound of the absolute value of an answer."""
        return 1 << curve.q if curve is not None and self.activation in CURVED else RAW


def through(layers: tuple[Dense, ...], x: Ints, curve: Curve | None) -> Ints:
    """Scores of a chain of layers: the last one's sums, unshifted."""
    for layer in layers[:-1]:
        x = layer.answer(x, curve)
    return layers[-1].sums(x)


def layer_body(layer: Dense) -> dict[str, Any]:
    """A layer as it stands in a document."""
    return {
        "weights": [list(row) for row in layer.weights],
        "biases": list(layer.biases),
        "shift": layer.shift,
        "activation": layer.activation,
    }


def read_layer(given: Any, where: str, inputs: int, bound: int) -> Dense:
    """A layer from a document; Malformed if its sums could overflow 64 bits.

    Parameters
    ----------
    given : Any
        Of the document.
    where : str
    inputs : int
        Numbers that it gets.
    bound : int
        Of their absolute values.
    """
    if not isinstance(given, Mapping) or set(given) != _KEYS:
        raise Malformed(f"{where}: an object with {', '.join(sorted(_KEYS))} was expected")
    rows = listed(given["weights"], f"{where}.weights")
    if not 1 <= len(rows) <= MAX_WIDTH:
        raise Malformed(f"{where}.weights: 1 to {MAX_WIDTH} rows were expected")
    weights = tuple(
        integers(row, f"{where}.weights[{i}]", -INT32_MAX, INT32_MAX) for i, row in enumerate(rows)
    )
    biases = integers(given["biases"], f"{where}.biases", -(2**62), 2**62)
    activation = given["activation"]
    if activation not in ("identity", "relu", "sigmoid", "tanh"):
        raise Malformed(f"{where}.activation: one of {', '.join(sorted(ACTIVATIONS))} was expected")
    if len(biases) != len(weights) or any(len(row) != inputs for row in weights):
        raise Malformed(f"{where}: {inputs} weights and a bias per row were expected")
    if any(
        sum(map(abs, w)) * bound + abs(b) >= 2**63 for w, b in zip(weights, biases, strict=True)
    ):
        raise Malformed(f"{where}: the sum could overflow 64 bits")
    return Dense(weights, biases, integer(given["shift"], f"{where}.shift", 0, 62), activation)


def read_layers(
    given: Any, where: str, inputs: int, bound: int, curve: Curve | None
) -> tuple[Dense, ...]:
    """A chain of layers from a document; the last one has neither shift nor activation."""
    items = listed(given, where)
    if not 1 <= len(items) <= MAX_LAYERS:
        raise Malformed(f"{where}: 1 to {MAX_LAYERS} layers were expected")
    layers: list[Dense] = []
    for i, item in enumerate(items):
        layer = read_layer(item, f"{where}[{i}]", inputs, bound)
        if layer.activation in CURVED and curve is None:
            raise Malformed(f"{where}[{i}]: {layer.activation} needs a curve")
        layers.append(layer)
        inputs, bound = len(layer.weights), layer.bound(curve)
    if layers[-1].shift or layers[-1].activation != "identity":
        raise Malformed(f"{where}: the last layer has no shift and no activation")
    return tuple(layers)


def check_outputs(outputs: int, labels: tuple[str, ...], where: str) -> None:
    """Malformed if scores and labels don't fit: one score for two labels, or one per label."""
    if outputs not in {len(labels), 1 if len(labels) == 2 else len(labels)}:
        raise Malformed(f"{where}: one score for two labels, or one per label, was expected")
