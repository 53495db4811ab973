"""Changes the batch size or the weights of an ONNX file (``cczoo export -t onnx --set ...``)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import UserError
from data.place import scratch
from export.fixed import limits, to_values
from export.loss import RANDOM, disagreements
from export.onnx.run import decided, predict
from export.source import Source
from models.onnx_safe import parsed

if TYPE_CHECKING:
    from onnx import ModelProto

DYNAMIC = "dynamic"
SYMBOL = "N"
QUANTISED = frozenset({"Gemm", "LSTM", "MatMul"})
MARGIN = 1.5
"""Tolerance of an int8 model, in units of the largest error that was measured: processors with
and without VNNI instructions round its products differently."""


def batch_of(content: bytes, where: str) -> str | int:
    """The number of rows that a file takes, or ``dynamic``."""
    (features,) = (i for i in parsed(content, where).graph.input if i.name == "features")
    return features.type.tensor_type.shape.dim[0].dim_value or DYNAMIC


def with_batch(content: bytes, batch: str | int, where: str) -> bytes:
    """The same model for any number of rows (``dynamic``) or for exactly ``batch``.

    Raises
    ------
    UserError
        For a file that is fixed to another number, and numbers below 1.
    """
    has = batch_of(content, where)
    if has != batch and has != DYNAMIC:
        raise UserError(
            f"--set batch={batch}: {where} is made for exactly {has} rows: leave it out"
        )
    if isinstance(batch, int) and batch < 1:
        raise UserError(f"--set batch={batch}: 1 or more rows, or dynamic, are possible")
    model = parsed(content, where)
    for end in (*model.graph.input, *model.graph.output):
        for size in end.type.tensor_type.shape.dim:
            if size.dim_value:
                continue
            if isinstance(batch, int):
                size.dim_value = batch
            else:
                size.dim_param = SYMBOL
    # Shapes of what lies between are stale now and of no use to a runtime.
    del model.graph.value_info[:]
    return bytes(model.SerializeToString(deterministic=True))


def in_int8(content: bytes, name: str, kind: str) -> bytes:
    """Weights as 8-bit integers, activations quantised as they come (dynamic quantisation).

    Layers that see observations keep their floats: one of eight bits for all columns of an
    observation would leave nothing of those that hardly change, which weigh most. Each row of
    weights has a scale of its own.

    Raises
    ------
    UserError
        For models without weights that ONNX Runtime can quantise, such as trees.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = parsed(content, name)
    if not {node.op_type for node in model.graph.node} & QUANTISED:
        raise UserError(
            f"--set int8=true: {name}, a {kind}, has no matrices to quantise, only "
            f"networks with {', '.join(sorted(QUANTISED))} have: leave it out"
        )
    with scratch("int8") as work:
        path = work / "int8.onnx"
        # It advises a preprocessing that has nothing to do on graphs without convolutions.
        logging.disable(logging.WARNING)
        try:
            # Seven bits, since eight saturate on processors without VNNI.
            quantize_dynamic(
                model,
                path,
                weight_type=QuantType.QInt8,
                per_channel=True,
                reduce_range=True,
                nodes_to_exclude=_first(model),
            )
        finally:
            logging.disable(logging.NOTSET)
        made = parsed(path.read_bytes(), name)
    return bytes(made.SerializeToString(deterministic=True))


def _first(model: ModelProto) -> list[str]:
    """Names of the layers before which there is no other, which this makes up where there is none.

    Of networks of one layer none is named, and no LSTM, which is most of what there is to quantise.
    """
    after: set[str] = set()
    first, others = [], 0
    for number, node in enumerate(model.graph.node):
        late = bool(after.intersection(node.input))
        if node.op_type in QUANTISED:
            node.name = node.name or f"layer{number}"
            if late or node.op_type == "LSTM":
                others += 1
            else:
                # ONNX Runtime makes a MatMul of a Gemm, with another name, before it looks.
                first += [node.name, f"{node.name}_MatMul"]
            late = True
        if late:
            after.update(node.output)
    return first if others else []


def int8_loss(content: bytes, source: Source) -> dict[str, Any]:
    """What quantisation changed, on the stored observations and on random ones in range.

    Returns
    -------
    dict
        ``largest_error`` (of a probability or score), ``tolerance``, ``stored`` and ``random``
        (:func:`export.loss.disagreements`), ``bytes`` and ``float_bytes``.
    """
    low, high = limits(source.features)
    drawn = np.random.default_rng(3).integers(low, high, (RANDOM, len(low)), endpoint=True)
    report: dict[str, Any] = {"bytes": len(content), "float_bytes": len(source.onnx)}
    largest = 0.0
    for name, values in (("stored", source.values), ("random", to_values(drawn, source.features))):
        ours = predict(content, values, source.name)
        meant = predict(source.onnx, values, source.name)
        largest = max(largest, float(np.abs(ours - meant).max(initial=0.0)))
        report[name] = disagreements(
            decided(ours, source.threshold), decided(meant, source.threshold)
        )
    return {**report, "largest_error": largest, "tolerance": MARGIN * largest}
