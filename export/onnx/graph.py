"""Writes the ONNX file of a graph that we put together ourselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from features.spec import Feature


def graph_file(
    nodes: Sequence[Any],
    constants: Sequence[Any],
    features: Sequence[Feature],
    name: str,
    labels: tuple[str, ...],
    settings: Mapping[str, Any],
    *,
    columns: int | None = None,
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """A graph from ``features`` [N, d] to the last node's output, checked, with its metadata.

    Parameters
    ----------
    nodes, constants : sequence of onnx.NodeProto, sequence of onnx.TensorProto
    features : sequence of Feature
    name : str
    labels : tuple of str
    settings : mapping
        What the features are computed with.
    columns : int, optional
        Of the output [N, columns]; by default it is [N].
    extra : mapping, optional
        Further metadata.
    """
    from onnx import TensorProto, checker, helper

    from export.onnx.metadata import OPSET, metadata

    shape: list[str | int | None] = ["N"] if columns is None else ["N", columns]
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [None, len(features)])],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, shape)],
        list(constants),
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in OPSET.items()]
    model = helper.make_model(graph, opset_imports=imports, producer_name="cczoo")
    model.ir_version = 8
    helper.set_model_props(model, {**metadata(features, labels, settings), **(extra or {})})
    checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def tanh_file(features: Sequence[Feature], name: str, labels: tuple[str, ...]) -> bytes:
    """The hyperbolic tangent of one feature as float32, in [-1, 1]."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Tanh", ["features"], ["values"]),
        helper.make_node("Reshape", ["values", "flat"], ["probability"]),
    ]
    flat = helper.make_tensor("flat", TensorProto.INT64, [1], [-1])
    return graph_file(nodes, [flat], features, name, labels, {})
