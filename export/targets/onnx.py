"""The float model as ONNX: opset pinned, any batch size, features described in the metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from export.fixed import to_values
from export.manifest import Bundle
from export.onnx_file import described, predict
from export.params import Options, VerifyParams, tolerance_of
from export.source import Source
from export.vectors import Vectors

SUMMARY = "ONNX, float32: features [N, d] -> probability [N]"
TAKES = frozenset({"float"})


def emit(source: Source, options: Options) -> dict[str, bytes]:
    """``<identifier>.onnx``, as training converted it."""
    return {f"{source.identifier}.onnx": source.onnx}


def check(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Answers on the stored vectors against the trained model's, within a tolerance.

    How often the float model and the integer form disagree over random observations in range is
    reported too; it is the price of integers, no mistake.
    """
    (path,) = bundle.files("onnx")
    content = path.read_bytes()
    described(content, bundle.manifest["schema_hash"], path.name)
    probability = predict(content, bundle.values, path.name)
    error = np.abs(probability - bundle.probability)
    tolerance = tolerance_of(bundle.manifest.get("scaling", {}), params.tolerance)
    report: dict[str, Any] = {
        "vectors": len(error),
        # Written so that a NaN counts as a mismatch.
        "mismatches": int((~(error <= tolerance)).sum()),
        "tolerance": tolerance,
        "largest_error": float(error.max()) if len(error) else 0.0,
    }
    if bundle.form is not None and vectors is not None:
        start = vectors.counts["stored"]
        x = vectors.x[start : start + params.random]
        floats = predict(content, to_values(x, bundle.features), path.name) > bundle.threshold
        differing = floats != bundle.form.evaluate(x).classes
        report["integer_form"] = {"vectors": len(x), "disagreements": int(differing.sum())}
    return report
