"""Converts a PyTorch network to ONNX with the one input and output that files of ours have."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from export.onnx.metadata import metadata
from features.spec import Feature

if TYPE_CHECKING:
    import torch

OPSET = 18
"""Pinned: the lowest that PyTorch's exporter writes (ONNX Runtime 1.14 and later run it)."""


def convert(
    network: torch.nn.Module,
    features: Sequence[Feature],
    name: str,
    labels: tuple[str, ...],
    settings: Mapping[str, Any],
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Convert a trained binary classifier.

    Parameters
    ----------
    network : torch.nn.Module
        Maps float32 array [N, d] in the features' units to the log-odds of ``labels[1]`` ([N]).
    features : sequence of Feature
        The d columns.
    name : str
        Graph name.
    labels : tuple of str
    settings : mapping
        What the features are computed with.
    extra : mapping, optional
        More metadata.

    Returns
    -------
    bytes
        The ONNX file: ``features`` float32 array [N, d] -> ``probability`` float32 array [N].

    Raises
    ------
    UserError
        When PyTorch can't convert the network, or wrote another opset.
    """
    import torch

    class Probability(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.network(features))

    # Two rows: a batch of one would be taken for a constant.
    example = torch.tensor([[(f.low + f.high) / 2 for f in features]] * 2, dtype=torch.float32)
    said = {**metadata(features, labels, settings), **(extra or {})}
    ends = Ends(("features",), ("probability",))
    return written(Probability().eval(), (example,), ends, name, said)


@dataclass(frozen=True)
class Ends:
    """Names of a graph's inputs and outputs, in the order of the module's own."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def written(
    module: torch.nn.Module, example: Any, ends: Ends, name: str, said: Mapping[str, str]
) -> bytes:
    """Write any module whose tensors all have a row for each observation.

    Parameters
    ----------
    module : torch.nn.Module
    example : tuple of tensor [2, ...]
        Its inputs; ``forward(features, *given)`` takes those after the first as ``given``.
    ends : Ends
    name : str
        Graph name.
    said : mapping
        The file's metadata.

    Returns
    -------
    bytes
        The ONNX file, for any number of rows.

    Raises
    ------
    UserError
        When PyTorch can't convert the module, or wrote another opset.
    """
    import torch
    from onnx import checker, helper

    rows = {0: torch.export.Dim("N")}
    try:
        with _quiet():
            program: Any = torch.onnx.export(
                module,
                example,
                dynamo=True,
                opset_version=OPSET,
                input_names=list(ends.inputs),
                output_names=list(ends.outputs),
                dynamic_shapes=(rows, tuple(rows for _ in example[1:])) if example[1:] else (rows,),
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise UserError(f"model {name!r}: PyTorch can't write it as ONNX: {reason}") from None
    model = program.model_proto
    if [(item.domain, item.version) for item in model.opset_import] != [("", OPSET)]:
        raise UserError(f"model {name!r}: PyTorch wrote another opset than {OPSET}")
    _strip(model)
    model.graph.name = name
    helper.set_model_props(model, dict(said))
    checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _strip(model: Any) -> None:
    """Drop stack traces, which name files of this machine and are three quarters of the file."""
    model.producer_version = ""
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    for item in (*model.graph.node, *model.graph.initializer):
        del item.metadata_props[:]
        item.doc_string = ""
    for end in (*model.graph.input, *model.graph.output):
        del end.metadata_props[:]


@contextlib.contextmanager
def _quiet() -> Any:
    """Silence PyTorch, which reports packages that it doesn't need here on three channels."""
    loggers = [logging.getLogger(name) for name in ("torch", "onnx_ir", "onnxscript")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
