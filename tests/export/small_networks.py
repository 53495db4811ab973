"""ONNX networks made node by node, with explicit states where they are recurrent."""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from small_models import FEATURES

from export.onnx.metadata import OPSET, metadata

MIDDLE = np.array([(f.low + f.high) / 2 for f in FEATURES], np.float32)
HALF = np.array([(f.high - f.low) / 2 for f in FEATURES], np.float32)
ACTIONS = ("down", "keep", "up")


def _tensors(**arrays):
    return [numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items()]


def _model(nodes, constants, labels, outputs, states=(), batch="N"):
    """``states``: (input, output, units) each."""
    given = [helper.make_tensor_value_info("features", TensorProto.FLOAT, [batch, len(FEATURES)])]
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in outputs]
    for before, after, units in states:
        shape = [1, batch, units]
        given.append(helper.make_tensor_value_info(before, TensorProto.FLOAT, shape))
        made.append(helper.make_tensor_value_info(after, TensorProto.FLOAT, shape))
    graph = helper.make_graph(nodes, "network", given, made, constants)
    opset = [helper.make_opsetid("", OPSET[""])]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    helper.set_model_props(model, metadata(FEATURES, labels, {}, {s[0]: s[1] for s in states}))
    checker.check_model(model)
    return model.SerializeToString()


def _scaled():
    nodes = [
        helper.make_node("Sub", ["features", "middle"], ["centred"]),
        helper.make_node("Div", ["centred", "half"], ["scaled"]),
    ]
    return nodes, _tensors(middle=MIDDLE, half=HALF)


def policy(seed=0, widths=(12, 8), activations=("Relu", "Tanh")):
    """Feed-forward, one score per action."""
    rng = np.random.default_rng(seed)
    nodes, constants = _scaled()
    at, before = "scaled", len(FEATURES)
    for i, (width, activation) in enumerate(zip(widths, activations, strict=True)):
        w = rng.normal(0, 1, (before, width)).astype(np.float32)
        b = rng.normal(0, 0.3, width).astype(np.float32)
        constants += _tensors(**{f"w{i}": w, f"b{i}": b})
        nodes += [
            helper.make_node("MatMul", [at, f"w{i}"], [f"m{i}"]),
            helper.make_node("Add", [f"m{i}", f"b{i}"], [f"z{i}"]),
            helper.make_node(activation, [f"z{i}"], [f"a{i}"]),
        ]
        at, before = f"a{i}", width
    w = rng.normal(0, 1, (3, before)).astype(np.float32)
    constants += _tensors(w=w, b=rng.normal(0, 0.1, 3).astype(np.float32))
    nodes.append(helper.make_node("Gemm", [at, "w", "b"], ["scores"], transB=1))
    return _model(nodes, constants, ACTIONS, [("scores", ["N", 3])])


def recurrent(kind, seed=0, units=8, reset_after=0, batch="N"):
    """A GRU or LSTM cell with its state as inputs and outputs, probability of the last label."""
    rng = np.random.default_rng(seed)
    gates = {"GRU": 3, "LSTM": 4}[kind]
    nodes, constants = _scaled()
    shape = (1, gates * units)
    constants += _tensors(
        W=rng.normal(0, 0.7, (*shape, len(FEATURES))).astype(np.float32),
        R=rng.normal(0, 0.5, (*shape, units)).astype(np.float32),
        B=rng.normal(0, 0.2, (1, 2 * gates * units)).astype(np.float32),
        w=rng.normal(0, 1.5, (1, units)).astype(np.float32),
        b=np.zeros(1, np.float32),
        first=np.array([0]),
        flat=np.array([-1]),
    )
    states = [("h_in", "h_out", units)] + ([("c_in", "c_out", units)] if kind == "LSTM" else [])
    settings = {"linear_before_reset": reset_after} if kind == "GRU" else {}
    fed = ["sequence", "W", "R", "B", "", *(s[0] for s in states)]
    nodes += [
        helper.make_node("Unsqueeze", ["scaled", "first"], ["sequence"]),
        helper.make_node(
            kind, fed, ["", *(s[1] for s in states)], hidden_size=units, name="cell", **settings
        ),
        helper.make_node("Squeeze", ["h_out", "first"], ["out"]),
        helper.make_node("Gemm", ["out", "w", "b"], ["margin"], transB=1),
        helper.make_node("Sigmoid", ["margin"], ["p"]),
        helper.make_node("Reshape", ["p", "flat"], ["probability"]),
    ]
    return _model(nodes, constants, ("NSB", "SB"), [("probability", [batch])], states, batch)
