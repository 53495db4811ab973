"""Prepares an ONNX graph for being lowered step by step: one row, plain operators, and ranges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.lower.prepare import NotLowerable
from models.onnx_safe import parsed, refuse_unsafe

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Graph:
    """A graph of plain operators for one observation.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
    constants : dict of str to array
    ranges : dict of str to float64 array
        Largest absolute value of each number of each tensor, in the tensor's shape.
    states : list of tuple of str
        Input and output of what is remembered.
    ends : frozenset of str
        Names of the outputs.
    """

    nodes: Sequence[Any]
    constants: dict[str, NDArray[Any]]
    ranges: dict[str, Floats]
    states: Sequence[tuple[str, str]]
    ends: frozenset[str]


def prepared(content: bytes, rows: Floats, where: str) -> Graph:
    """A file's graph, with what its numbers come to on a sequence of observations.

    Parameters
    ----------
    content : bytes
    rows : float64 array [n, d]
    where : str
        Its name, for messages.

    Raises
    ------
    NotLowerable
        When the graph can't be run so.
    """
    import onnx
    from onnx import numpy_helper

    from export.onnx.options import with_batch

    model = parsed(with_batch(content, 1, where), where)
    graph = model.graph
    constants = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    nodes = [plain for node in graph.node for plain in _plain(node, constants)]
    del graph.node[:]
    graph.node.extend(nodes)
    known = set(constants)
    graph.initializer.extend(
        numpy_helper.from_array(value, name)
        for name, value in constants.items()
        if name not in {item.name for item in graph.initializer}
    )
    said = {item.key: item.value for item in model.metadata_props}
    pairs = [json.loads(said.get(key, "[]")) for key in ("state_in", "state_out")]
    states = list(zip(*pairs, strict=True))
    ends = frozenset(output.name for output in graph.output)
    found = [name for node in nodes for name in node.output if name not in known]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in found if name not in ends)
    try:
        ranges = _ranges(model, rows, states, where)
    except Exception as error:
        # ONNX Runtime raises many unrelated types.
        raise NotLowerable((str(error) or type(error).__name__).splitlines()[0][:200]) from None
    return Graph(nodes, constants, ranges, states, ends)


def _ranges(
    model: Any, rows: Floats, states: Sequence[tuple[str, str]], where: str
) -> dict[str, Floats]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Optimised graphs lack some of the tensors.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    judged = refuse_unsafe(model.SerializeToString(), where).SerializeToString()
    session = onnxruntime.InferenceSession(judged, options, providers=["CPUExecutionProvider"])
    outputs = [one.name for one in session.get_outputs()]
    state = {
        one.name: np.zeros([s if isinstance(s, int) else 1 for s in one.shape], np.float32)
        for one in session.get_inputs()
    }
    del state["features"]
    found: dict[str, Floats] = {}
    for row in rows.astype(np.float32)[:, None]:
        given = {"features": row, **state}
        seen = dict(zip(outputs, session.run(outputs, given), strict=True))
        state = {name: seen[after] for name, after in states}
        for name, value in {**seen, **given}.items():
            size = np.abs(value.astype(np.float64))
            found[name] = np.maximum(found[name], size) if name in found else size
    return found


def _plain(node: Any, constants: dict[str, Any]) -> list[Any]:
    """What a node is made of: normalisations and softmax are sums, quotients and roots."""
    from onnx import helper

    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Pow" and np.array_equal(constants.get(node.input[1], 0), 2):
        return [helper.make_node("Mul", [node.input[0]] * 2, list(node.output))]
    if node.op_type == "Softmax":
        return _softmax(node, attributes.get("axis", -1), constants)
    if node.op_type == "LayerNormalization":
        if attributes.get("axis", -1) != -1:
            raise NotLowerable("LayerNormalization over several axes")
        return _normalised(node, [-1], attributes.get("epsilon", 1e-5), constants, ())
    if node.op_type == "InstanceNormalization":
        return _normalised(node, [2], attributes.get("epsilon", 1e-5), constants, (-1, 1))
    return [node]


def _softmax(node: Any, axis: int, constants: dict[str, Any]) -> list[Any]:
    from onnx import helper

    (x,), (y,) = node.input, node.output
    peak, rest, power, total, axes = (f"{y}/{i}" for i in range(5))
    constants[axes] = np.array([axis], dtype=np.int64)
    return [
        helper.make_node("ReduceMax", [x, axes], [peak], keepdims=1),
        helper.make_node("Sub", [x, peak], [rest]),
        helper.make_node("Exp", [rest], [power]),
        helper.make_node("ReduceSum", [power, axes], [total], keepdims=1),
        helper.make_node("Div", [power, total], [y]),
    ]


def _normalised(
    node: Any, axes: list[int], epsilon: float, constants: dict[str, Any], shape: tuple[int, ...]
) -> list[Any]:
    from onnx import helper

    x, gain, *offset = node.input
    y = node.output[0]
    over, least = f"{y}/axes", f"{y}/epsilon"
    mean, rest, square, spread, safe, root, plain, scaled = (f"{y}/{i}" for i in range(8))
    constants[over] = np.array(axes, dtype=np.int64)
    constants[least] = np.float32(epsilon)
    for name in (gain, *offset):
        if name not in constants:
            raise NotLowerable(f"{node.op_type} by {name}, which isn't a constant")
        constants[f"{y}/{name}"] = constants[name].reshape(shape or constants[name].shape)
    made = [
        helper.make_node("ReduceMean", [x, over], [mean], keepdims=1),
        helper.make_node("Sub", [x, mean], [rest]),
        helper.make_node("Mul", [rest, rest], [square]),
        helper.make_node("ReduceMean", [square, over], [spread], keepdims=1),
        helper.make_node("Add", [spread, least], [safe]),
        helper.make_node("Sqrt", [safe], [root]),
        helper.make_node("Div", [rest, root], [plain]),
        helper.make_node("Mul", [plain, f"{y}/{gain}"], [scaled if offset else y]),
    ]
    if offset:
        made.append(helper.make_node("Add", [scaled, f"{y}/{offset[0]}"], [y]))
    return made
