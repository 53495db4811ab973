"""Converts a PyTorch network to ONNX with the one input and output that files of ours have."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
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
    from onnx import checker, helper

    class Probability(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.network(features))

    # Two rows: a batch of one would be taken for a constant.
    example = torch.tensor([[(f.low + f.high) / 2 for f in features]] * 2, dtype=torch.float32)
    try:
        with _quiet():
            program: Any = torch.onnx.export(
                Probability().eval(),
                (example,),
                dynamo=True,
                opset_version=OPSET,
                input_names=["features"],
                output_names=["probability"],
                dynamic_shapes={"features": {0: torch.export.Dim("N")}},
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
    helper.set_model_props(model, {**metadata(features, labels, settings), **(extra or {})})
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
