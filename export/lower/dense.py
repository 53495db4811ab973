"""Turns layers of floats into layers of integers with as many bits as 64-bit sums allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.fixed import INT32_MAX
from export.forms.curve import Curve
from export.forms.dense import CURVED, Dense
from export.lower.prepare import NotLowerable
from export.tanh import tanh_curve

Floats = NDArray[np.float64]
STATE_PLACES = 16
"""Fractional bits of what tanh and the logistic function answer, and of recurrent states."""
CURVE_ENTRIES = 513
"""Entries of the table of tanh: at Q16 a line between two errs by about one last unit."""
MOST_PLACES = 24
"""Fractional bits of rectified activations, at most."""


@dataclass(frozen=True)
class FloatLayer:
    """``activation(weights @ x + biases)``: float64 array [outputs, inputs] and [outputs]."""

    weights: Floats
    biases: Floats
    activation: str


@dataclass(frozen=True)
class Reach:
    """What a layer's inputs are.

    Attributes
    ----------
    places : int
        Their fractional bits.
    bound : int
        Of their absolute values as integers, whatever the observation.
    low, high : float64 arrays
        Their values on observations in range.
    """

    places: int
    bound: int
    low: Floats
    high: Floats


def network_curve() -> Curve:
    """The table of tanh that networks share; one bit more of input serves the logistic function."""
    return tanh_curve(STATE_PLACES + 1, STATE_PLACES, CURVE_ENTRIES)


def integer_layers(
    layers: Sequence[FloatLayer], reach: Reach, curve: Curve | None
) -> tuple[tuple[Dense, ...], int]:
    """A chain of layers and the fractional bits of its scores.

    Raises
    ------
    NotLowerable
        When weights are too large for 32-bit integers.
    """
    made = []
    for layer in layers[:-1]:
        dense, reach = integer_layer(layer, reach, curve)
        made.append(dense)
    last = layers[-1]
    shift = weight_places(last, reach)
    made.append(_dense(last, shift, reach.places, 0))
    return tuple(made), shift + reach.places


def integer_layer(
    layer: FloatLayer, reach: Reach, curve: Curve | None, places: int | None = None
) -> tuple[Dense, Reach]:
    """One layer with its activation, and what it answers.

    Parameters
    ----------
    layer : FloatLayer
    reach : Reach
        Of its inputs.
    curve : Curve, optional
    places : int, optional
        Fractional bits before the activation; chosen for the layer if None.
    """
    fraction = weight_places(layer, reach)
    middle = layer.weights @ ((reach.low + reach.high) / 2) + layer.biases
    spread = np.abs(layer.weights) @ ((reach.high - reach.low) / 2)
    low, high = middle - spread, middle + spread
    if places is None:
        largest = max(float(np.abs([low, high]).max()), 1.0)
        places = min(MOST_PLACES, 30 - math.ceil(math.log2(largest)), fraction + reach.places)
        if layer.activation in CURVED and curve is not None:
            places = curve.places - 1
    shift = fraction + reach.places - places
    if places < 0 or shift < 0:
        raise NotLowerable("a layer's weights are too large for 32-bit integers")
    dense = _dense(layer, fraction, reach.places, shift)
    if layer.activation in CURVED and curve is not None:
        ends = np.ones(len(low))
        floor = -ends if layer.activation == "tanh" else 0 * ends
        return dense, Reach(curve.q, dense.bound(curve), floor, ends)
    if layer.activation == "relu":
        low, high = np.maximum(low, 0), np.maximum(high, 0)
    return dense, Reach(places, dense.bound(curve), low, high)


def weight_places(layer: FloatLayer, reach: Reach) -> int:
    """Fractional bits of the weights: as many as 32-bit weights and 64-bit sums allow."""
    biases = np.abs(layer.biases) * 2.0**reach.places
    sums = float((np.abs(layer.weights).sum(axis=1) * reach.bound + biases).max())
    largest = float(np.abs(layer.weights).max(initial=0.0))
    # A factor of two is left for the rounding of weights and for the half in the bias.
    room = min(2.0**61 / max(sums, 1e-300), (INT32_MAX - 1) / max(largest, 1e-300))
    places = min(math.floor(math.log2(room)), 60 - reach.places)
    if places < 0:
        raise NotLowerable("a layer's weights are too large for 32-bit integers")
    return places


def _dense(layer: FloatLayer, fraction: int, places: int, shift: int) -> Dense:
    weights = np.floor(layer.weights * 2.0**fraction + 0.5).astype(np.int64)
    biases = np.floor(layer.biases * 2.0 ** (fraction + places) + 0.5).astype(np.int64)
    half = (1 << shift) >> 1
    return Dense(
        tuple(tuple(row) for row in weights.tolist()),
        tuple(b + half for b in biases.tolist()),
        shift,
        layer.activation,
    )


def folded_inputs(
    weights: Floats, columns: Sequence[int], a: Floats, b: Floats, n_features: int
) -> tuple[Floats, Floats]:
    """Weights of the features' integers and what to add to the biases.

    Parameters
    ----------
    weights : float64 array [outputs, inputs]
    columns : sequence of int
        Feature of each input.
    a, b : float64 arrays [inputs]
        Input ``j`` is ``a[j] * integer + b[j]``.
    n_features : int

    Returns
    -------
    weights : float64 array [outputs, n_features]
    added : float64 array [outputs]
    """
    folded = np.zeros((len(weights), n_features))
    for j, column in enumerate(columns):
        folded[:, column] += weights[:, j] * a[j]
    return folded, weights @ b
