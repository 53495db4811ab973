"""The one place that opens ONNX files: data alone, a finite graph of built-in operators.

An entry of the zoo or a bundle may be a stranger's, so a file is read as ONNX, judged, and what was
judged is what ONNX Runtime gets, never the bytes themselves: it would take them for its own format,
which nothing here can judge, if they looked like it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from data.errors import UserError

DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
"""Built into ONNX Runtime; the last has its quantised recurrent networks."""
ENDLESS = frozenset({"EPContext", "Loop", "Scan", "SequenceMap"})
"""Loops need not end, or not in our time; the first hands a file to a device's own library."""
SIZED = frozenset({"ConstantOfShape", "Expand", "Range", "Tile"})
"""What they give is as large as a number among their inputs says."""
LARGEST = 1 << 24
"""Elements that a constant may make one of them give; released models stay below a thousand."""
OTHER_FORMAT = b"ORTM"
"""At offset 4 of ONNX Runtime's own format."""
EXTERNAL = 1
MOST_DIMENSIONS = 16


def parsed(content: bytes, where: str) -> Any:
    """The file as onnx's ModelProto.

    Raises
    ------
    UserError
        When it isn't an ONNX file.
    """
    import onnx

    try:
        return onnx.load_from_string(content)
    except Exception as error:
        # Protobuf's own error types differ between its implementations.
        raise UserError(f"{where}: not an ONNX file: {error}") from None


def open_session(content: bytes, where: str) -> Any:
    """A session of ONNX Runtime, on one thread of the processor.

    Raises
    ------
    UserError
        When the file isn't fit to be run, see :func:`refuse_unsafe`.
    """
    import onnxruntime

    model = refuse_unsafe(content, where)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def refuse_unsafe(content: bytes, where: str) -> Any:
    """Refuse a file that reaches outside of itself or need not end.

    Returns
    -------
    onnx.ModelProto
        What was judged, without fields that ONNX doesn't know.

    Raises
    ------
    UserError
        When it isn't an ONNX file, keeps weights in other files, or has operators that ONNX
        Runtime doesn't bring along.
    """
    if content[4:8] == OTHER_FORMAT:
        raise UserError(f"{where}: in ONNX Runtime's own format: export it again as ONNX")
    model = parsed(content, where)
    model.DiscardUnknownFields()
    if not content or not model.graph.node:
        raise UserError(f"{where}: not an ONNX file")
    odd = sorted({item.domain for item in model.opset_import} - DOMAINS)
    bodies = [model.graph, *model.functions]
    nodes = [node for body in bodies for graph in _graphs(body) for node in graph.node]
    odd += sorted({n.domain for n in nodes} - DOMAINS - {f.domain for f in model.functions})
    if odd:
        raise UserError(f"{where}: has operators of {odd[0]!r}, which ONNX Runtime lacks")
    for node in nodes:
        if node.op_type in ENDLESS:
            raise UserError(f"{where}: has the operator {node.op_type}, which cczoo doesn't run")
    if any(t.data_location == EXTERNAL or t.external_data for b in bodies for t in _tensors(b)):
        raise UserError(f"{where}: keeps weights in other files: export it again as one file")
    for body in bodies:
        _refuse_large(body, where)
    return model


def _refuse_large(body: Any, where: str) -> None:
    """Refuse operators whose constant inputs ask for more than :data:`LARGEST` elements."""
    constants: dict[str, Any] = {}
    sized = []
    for graph in _graphs(body):
        constants |= {tensor.name: tensor for tensor in getattr(graph, "initializer", ())}
        for node in graph.node:
            if node.op_type == "Constant" and node.output:
                for value in (a.t for a in node.attribute if a.name == "value"):
                    constants[node.output[0]] = value
            elif node.op_type in SIZED:
                sized.append(node)
    for node in sized:
        # Range's inputs are its ends and its step; of the others the last is a list of sizes.
        names = node.input if node.op_type == "Range" else node.input[-1:]
        given = [_numbers(constants[name], where) for name in names if name in constants]
        asked = [abs(n) for numbers in given for n in numbers]
        size = max(asked, default=0) if node.op_type == "Range" else math.prod(asked)
        if not size <= LARGEST:
            raise UserError(f"{where}: its operator {node.op_type} gives {size:.2g} elements")


def _numbers(tensor: Any, where: str) -> list[float]:
    """A small constant's numbers; of larger ones, which are weights and no sizes, none."""
    from onnx import numpy_helper

    if math.prod(tensor.dims) > MOST_DIMENSIONS:
        return []
    try:
        return [float(n) for n in numpy_helper.to_array(tensor).reshape(-1)]
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{where}: a constant can't be read: {error}") from None


def _tensors(body: Any) -> Iterator[Any]:
    """All constants of a graph or function."""
    for graph in _graphs(body):
        yield from getattr(graph, "initializer", ())
        for item in getattr(graph, "sparse_initializer", ()):
            yield from (item.values, item.indices)
        for node in graph.node:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)
                for item in (attribute.sparse_tensor, *attribute.sparse_tensors):
                    yield from (item.values, item.indices)


def _graphs(body: Any) -> Iterator[Any]:
    """A graph or function and all graphs inside it."""
    waiting = [body]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                inner = (attribute.g, *attribute.graphs)
                waiting += [g for g in inner if g.node or g.initializer or g.sparse_initializer]
