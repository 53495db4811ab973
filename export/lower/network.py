"""Lowers an ONNX network to Mlp or Recurrent: layers, with a GRU or LSTM cell before them."""

from __future__ import annotations

import math

import numpy as np

from export.fixed import limits
from export.forms.dense import RAW
from export.forms.mlp import Mlp
from export.forms.recurrent import MOST_UNITS, Recurrent
from export.lower.dense import (
    FloatLayer,
    Reach,
    folded_inputs,
    integer_layer,
    integer_layers,
    network_curve,
)
from export.lower.mlp import integer_mlp, scaled_threshold
from export.lower.onnx_chain import Cell, Chain, read_chain
from export.lower.prepare import NotLowerable
from features.spec import Feature


def lower_network(
    content: bytes, features: tuple[Feature, ...], labels: tuple[str, ...], threshold: float = 0.5
) -> Mlp | Recurrent:
    """Lower a float network to integers.

    Parameters
    ----------
    content : bytes
        ONNX: input ``features`` float32 array [N, d]; output ``probability`` [N] of ``labels[1]``,
        ending with Sigmoid, or ``scores`` [N, labels]; Gemm or MatMul and Add, Relu, Tanh,
        Sigmoid between, constants scaling the input before, at most one GRU or LSTM first.
    features : tuple of Feature
    labels : tuple of str
    threshold : float
        On the probability.

    Raises
    ------
    NotLowerable
        When the graph isn't such a chain.
    """
    chain = read_chain(content, len(features))
    if chain.answer == "scores" and len(chain.layers[-1].weights) != len(labels):
        raise NotLowerable(f"{len(chain.layers[-1].weights)} scores for {len(labels)} labels")
    if chain.answer == "probability" and len(labels) != 2:
        raise NotLowerable(f"one probability for {len(labels)} labels: give scores, one for each")
    decision_threshold = 0.0
    if chain.answer == "probability":
        decision_threshold = math.copysign(math.inf, threshold - 0.5)
        if 0 < threshold < 1:
            decision_threshold = math.log(threshold / (1 - threshold))
    scale = np.array([f.scale for f in features], dtype=np.float64)
    if chain.cell is not None:
        return _recurrent(chain, chain.cell, features, labels, decision_threshold)
    first = chain.layers[0]
    weights, added = folded_inputs(
        first.weights, range(len(features)), chain.a / scale, chain.b, len(features)
    )
    layers = [FloatLayer(weights, first.biases + added, first.activation), *chain.layers[1:]]
    return integer_mlp(features, labels, layers, decision_threshold)


def _recurrent(
    chain: Chain,
    cell: Cell,
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: float,
) -> Recurrent:
    units = cell.hidden.shape[1]
    if units > MOST_UNITS:
        raise NotLowerable(f"{units} units, {MOST_UNITS} is the most")
    scale = np.array([f.scale for f in features], dtype=np.float64)
    weights, added = folded_inputs(
        cell.inputs, range(len(features)), chain.a / scale, chain.b, len(features)
    )
    low, high = limits(features)
    curve = network_curve()
    raw = Reach(0, RAW, low.astype(np.float64), high.astype(np.float64))
    ones = np.ones(units)
    state = Reach(curve.q, 1 << curve.q, -ones, ones)
    given = FloatLayer(weights, cell.input_biases + added, "identity")
    kept = FloatLayer(cell.hidden, cell.hidden_biases, "identity")
    inputs, _ = integer_layer(given, raw, curve, curve.q)
    hidden, _ = integer_layer(kept, state, curve, curve.q)
    head, places = integer_layers(chain.layers, state, curve)
    threshold = scaled_threshold(decision_threshold, places)
    return Recurrent(
        cell.kind, features, labels, threshold, inputs, hidden, cell.reset_after,
        head, curve, places,
    )  # fmt: skip
