"""The float model as ONNX: opset pinned, features and states described in the metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from export.fixed import to_values
from export.manifest import Bundle
from export.onnx_file import described
from export.onnx_options import batch_of, in_int8, int8_loss, with_batch
from export.onnx_run import decided, predict
from export.onnx_safe import refuse_unsafe
from export.params import Options, VerifyParams, tolerance_of
from export.source import Source
from export.vectors import Vectors

SUMMARY = "ONNX, float32 or int8 (--set int8=true): features [N, d] -> probability [N] or scores"
TAKES = frozenset({"float"})
ROWS_ALONE = 8


def emit(source: Source, options: Options) -> dict[str, bytes]:
    """``<identifier>.onnx``, as training converted it but for the options."""
    content = source.onnx
    if options.int8:
        content = in_int8(content, source.name, source.kind)
    if options.batch is not None:
        content = with_batch(content, options.batch, f"{source.identifier}.onnx")
    return {f"{source.identifier}.onnx": content}


def again(bundle: Bundle, source: Source, options: Options) -> dict[str, bytes]:
    """The file itself, which is data: checked to hold nothing but a graph of known operators.

    Raises
    ------
    UserError
        When it reaches outside of itself, or isn't the file that the manifest's hash names.
    """
    name = f"{source.identifier}.onnx"
    refuse_unsafe(source.onnx, name)
    as_trained = source.form is None and not options.int8 and options.batch is None
    if as_trained and source.model_hash != bundle.manifest["model_hash"]:
        raise UserError(f"{name}: not the model that the manifest describes")
    return {name: source.onnx}


def stated(source: Source, options: Options, files: Mapping[str, bytes]) -> dict[str, Any]:
    """For the manifest: opset, batch, number of states, and what int8 cost."""
    ((name, content),) = files.items()
    said = described(content, source.features, source.feature_settings, name)
    said["batch"] = batch_of(content, name)
    return said | ({"int8": int8_loss(content, source)} if options.int8 else {})


def check(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Answers on the stored vectors against the trained model's, within a tolerance.

    How often the float model and the integer form disagree over random observations in range is
    reported too; it is the price of integers, no mistake.
    """
    (path,) = bundle.files("onnx")
    content = path.read_bytes()
    said = bundle.manifest["targets"]["onnx"]
    found = described(content, bundle.features, bundle.settings, path.name)
    answers = predict(content, bundle.values, path.name)
    error = np.abs(answers - bundle.probability).reshape(len(answers), -1).max(axis=1)
    tolerance = tolerance_of(bundle.manifest.get("scaling", {}), params.tolerance)
    if "int8" in said:
        tolerance = max(tolerance, float(said["int8"]["tolerance"]))
    report: dict[str, Any] = {
        "vectors": len(error),
        # Written so that a NaN counts as a mismatch.
        "mismatches": int((~(error <= tolerance)).sum()),
        "tolerance": tolerance,
        "largest_error": float(error.max()) if len(error) else 0.0,
        **found,
        "batch": batch_of(content, path.name),
    }
    if "int8" in said:
        report["int8"] = said["int8"]
    elif not found["states"]:
        # Quantised activations share one scale per batch, a float model's rows nothing.
        alone = [predict(content, row[None], path.name)[0] for row in bundle.values[:ROWS_ALONE]]
        unlike = np.abs(np.array(alone) - answers[:ROWS_ALONE]) > tolerance
        report["mismatches"] += int(unlike.reshape(len(alone), -1).any(axis=1).sum())
    if bundle.form is not None and vectors is not None:
        start = vectors.counts["stored"]
        x = vectors.x[start : start + params.random]
        floats = decided(
            predict(content, to_values(x, bundle.features), path.name), bundle.threshold
        )
        differing = floats != bundle.form.evaluate(x).classes
        report["integer_form"] = {"vectors": len(x), "disagreements": int(differing.sum())}
    return report
