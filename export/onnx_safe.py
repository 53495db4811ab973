"""Whether an ONNX file of unknown origin is data alone: a finite graph of built-in operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data.errors import UserError
from export.onnx_file import parsed

DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
"""Built into ONNX Runtime; the last has its quantised recurrent networks."""
ENDLESS = frozenset({"Loop", "EPContext"})
"""A loop need not end; the other hands a file to a device's own library."""
EXTERNAL = 1


def refuse_unsafe(content: bytes, where: str) -> None:
    """Refuse a file that reaches outside of itself or need not end.

    Raises
    ------
    UserError
        When it isn't an ONNX file, keeps weights in other files, or has operators that ONNX
        Runtime doesn't bring along.
    """
    model = parsed(content, where)
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
            raise UserError(f"{where}: has the operator {node.op_type}, which verify doesn't run")
    if any(t.data_location == EXTERNAL or t.external_data for b in bodies for t in _tensors(b)):
        raise UserError(f"{where}: keeps weights in other files: export it again as one file")


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
