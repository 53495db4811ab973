"""Reads an ONNX network as a chain: scaling, perhaps a recurrent cell, layers, an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.lower.dense import FloatLayer
from export.lower.prepare import NotLowerable
from export.onnx.run import ANSWERS

Floats = NDArray[np.float64]
ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid"}
SHAPES = {"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Dropout"}
"""Nodes that move numbers without changing them."""
SCALINGS = {"Add", "Sub", "Mul", "Div"}


@dataclass(frozen=True)
class Cell:
    """A recurrent node's weights, as ONNX orders its gates.

    Attributes
    ----------
    kind : str
        gru or lstm.
    inputs, hidden : float64 arrays [gates * units, d] and [gates * units, units]
    input_biases, hidden_biases : float64 arrays [gates * units]
    reset_after : bool
    """

    kind: str
    inputs: Floats
    hidden: Floats
    input_biases: Floats
    hidden_biases: Floats
    reset_after: bool


@dataclass
class Chain:
    """What the graph does from ``features`` on.

    Attributes
    ----------
    a, b : float64 arrays [d]
        The network's input is ``a * features + b``.
    cell : Cell or None
    layers : list of FloatLayer
    answer : str
        The output's name, of :data:`export.onnx.run.ANSWERS`.
    """

    a: Floats
    b: Floats
    answer: str
    cell: Cell | None = None
    layers: list[FloatLayer] = field(default_factory=list)


def read_chain(content: bytes, d: int) -> Chain:
    """Read a file of ours.

    Parameters
    ----------
    content : bytes
    d : int
        Number of features.

    Raises
    ------
    NotLowerable
        For any node that has no integer form, and graphs that aren't one chain.
    """
    graph, constants = graph_of(content)
    answer = next((o.name for o in graph.output if o.name in ANSWERS), None)
    if answer is None:
        raise NotLowerable(f"no output {' or '.join(ANSWERS)}")
    chain = Chain(np.ones(d), np.zeros(d), answer)
    for node in path_to(graph, answer, constants):
        _take(node, chain, constants)
    _strip_link(chain)
    return chain


def graph_of(content: bytes) -> tuple[Any, dict[str, Any]]:
    """A file's graph and its constants by name; NotLowerable if it isn't an ONNX file."""
    import onnx

    try:
        graph = onnx.load_from_string(content).graph
    except Exception as error:
        # Protobuf's own error types differ between its implementations.
        raise NotLowerable(f"not an ONNX file: {error}") from None
    constants = {c.name: onnx.numpy_helper.to_array(c) for c in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    return graph, constants


def path_to(graph: Any, answer: str, constants: dict[str, Any]) -> list[Any]:
    """Nodes from ``features`` to the answer, each fed by the one before it."""
    makers = {name: node for node in graph.node for name in node.output}
    path: list[Any] = []
    at = answer
    while at != "features":
        node = makers.get(at)
        if node is None or len(path) > len(graph.node):
            raise NotLowerable(f"{at!r} isn't computed from features alone")
        path.append(node)
        fed = [name for name in node.input if name and name not in constants]
        recurrent = node.op_type in {"GRU", "LSTM"}
        if not fed or (len(fed) > 1 and not recurrent):
            raise NotLowerable(f"{node.op_type} joins several branches: only chains have a form")
        at = fed[0]
    return path[::-1]


def _take(node: Any, chain: Chain, constants: dict[str, Any]) -> None:
    import onnx

    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    given = [np.asarray(constants[name], np.float64) for name in node.input if name in constants]
    op, begun = node.op_type, bool(chain.layers or chain.cell)
    if op in SHAPES:
        return
    if op in SCALINGS and not begun:
        _scale(chain, op, given[0].ravel(), node.input[0] in constants)
    elif op in {"Gemm", "MatMul"} and node.input[1] in constants:
        if attributes.get("transA") or node.input[0] in constants:
            raise NotLowerable(f"{op} of a constant with the observation isn't a layer")
        weights = given[0] if attributes.get("transB") else given[0].T
        weights = weights * attributes.get("alpha", 1.0)
        biases = np.zeros(len(weights))
        if len(given) > 1:
            biases = biases + given[1].ravel() * attributes.get("beta", 1.0)
        chain.layers.append(FloatLayer(weights, biases, "identity"))
    elif op == "Add" and chain.layers and chain.layers[-1].activation == "identity":
        last = chain.layers.pop()
        chain.layers.append(FloatLayer(last.weights, last.biases + given[0].ravel(), "identity"))
    elif op in ACTIVATIONS and chain.layers and chain.layers[-1].activation == "identity":
        last = chain.layers.pop()
        chain.layers.append(FloatLayer(last.weights, last.biases, ACTIVATIONS[op]))
    elif op in {"Softmax", "LogSoftmax"} and chain.layers and chain.answer == "scores":
        return
    elif op in {"GRU", "LSTM"} and not begun:
        chain.cell = _cell(node, attributes, constants)
    else:
        raise NotLowerable(f"{op} has no integer form here")


def _scale(chain: Chain, op: str, by: Floats, constant_first: bool) -> None:
    if op == "Add":
        chain.b = chain.b + by
    elif op == "Mul":
        chain.a, chain.b = chain.a * by, chain.b * by
    elif constant_first:
        raise NotLowerable(f"{op} of a constant by the observation isn't a scaling")
    elif op == "Sub":
        chain.b = chain.b - by
    else:
        chain.a, chain.b = chain.a / by, chain.b / by


def _cell(node: Any, attributes: dict[str, Any], constants: dict[str, Any]) -> Cell:
    kind = node.op_type.lower()
    usual = {"gru": [b"Sigmoid", b"Tanh"], "lstm": [b"Sigmoid", b"Tanh", b"Tanh"]}[kind]
    odd = [
        attributes.get("direction", b"forward") != b"forward",
        attributes.get("activations", usual) != usual,
        "clip" in attributes,
        attributes.get("input_forget", 0),
        attributes.get("layout", 0),
        any(node.input[4:5]),
        len(node.input) > 7 and bool(node.input[7]),
    ]
    if any(odd) or any(name not in constants for name in node.input[1:4] if name):
        raise NotLowerable(f"{node.op_type} with other than its usual settings has no integer form")
    inputs = np.asarray(constants[node.input[1]], np.float64)[0]
    hidden = np.asarray(constants[node.input[2]], np.float64)[0]
    biases = np.zeros(2 * len(inputs))
    if len(node.input) > 3 and node.input[3]:
        biases = np.asarray(constants[node.input[3]], np.float64)[0]
    after = bool(attributes.get("linear_before_reset", 0))
    half = len(inputs)
    return Cell(kind, inputs, hidden, biases[:half], biases[half:], after)


def _strip_link(chain: Chain) -> None:
    """Leave the last layer's sums: a probability's logistic function moves into the threshold."""
    layers: Sequence[FloatLayer] = chain.layers
    if not layers:
        raise NotLowerable("the network has no layer")
    last = layers[-1]
    wanted = "sigmoid" if chain.answer == "probability" else "identity"
    if last.activation != wanted:
        raise NotLowerable(f"{chain.answer} ends with {last.activation}, not {wanted}")
    chain.layers[-1] = FloatLayer(last.weights, last.biases, "identity")
