"""Exports the float model as ONNX: opset pinned, features and states in the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.bundle.manifest import Bundle
from export.bundle.manifest_schema import STORED_VECTORS
from export.description import vectors_file
from export.fixed import to_values
from export.ir import Form
from export.loss import apart, real_scores, size_of
from export.onnx.child import predict_apart
from export.onnx.metadata import described
from export.onnx.options import batch_of, in_int8, int8_loss, with_batch
from export.onnx.run import decided
from export.params import Options, VerifyParams, differing_at_most, tolerance_of
from export.source import Source
from export.targets import PROGRAM
from export.toolchain.harness import CannotRun
from export.vectors import Vectors
from models.onnx_safe import refuse_unsafe

SUMMARY = "ONNX, float32 or int8 (--set int8=true): features [N, d] -> probability [N] or scores"
ROWS_ALONE = 8
Floats = NDArray[np.float64]


def emit(source: Source, options: Options) -> dict[str, bytes]:
    """``<identifier>.onnx``, as training converted it but for the options.

    A model without a form is what its ONNX file is: if options alter that, the file as trained
    comes along as ``<identifier>_trained.onnx``, and verification makes the other from it anew.
    """
    content = source.onnx
    if options.int8:
        content = in_int8(content, source.name, source.kind)
    if options.batch is not None:
        content = with_batch(content, options.batch, f"{source.identifier}.onnx")
    files = {f"{source.identifier}.onnx": content}
    if _is_its_file(source.form) and not _as_trained(options):
        files[f"{source.identifier}_trained.onnx"] = source.onnx
    if _is_its_file(source.form) and len(source.values) > STORED_VECTORS:
        answers = (source.values, source.probability, source.output.kind)
        files[vectors_name(source.identifier)] = vectors_file(*answers)
    return files


def _is_its_file(form: Form | None) -> bool:
    """Whether a model is what its ONNX file is: a program was made of that, too."""
    return form is None or form.kind == PROGRAM


def vectors_name(identifier: str) -> str:
    """File of the observations that a model without an integer form is proved by."""
    return f"{identifier}_vectors.json"


def again(bundle: Bundle, source: Source, options: Options) -> dict[str, bytes]:
    """The file itself, which is data: checked to hold nothing but a graph of known operators.

    Raises
    ------
    UserError
        When it reaches outside of itself, or isn't the file that the manifest's hash names.
    """
    name = f"{source.identifier}.onnx"
    refuse_unsafe(source.onnx, name)
    if not _is_its_file(source.form):
        return {name: source.onnx}
    if source.model_hash != bundle.manifest["model_hash"]:
        raise UserError(f"{name}: not the model that the manifest describes")
    made = emit(source, options)
    file = vectors_name(source.identifier)
    if file in bundle.contents:
        # Data, as those of the manifest are: the first of them stand in both.
        kept_vectors(bundle)
        made[file] = bundle.contents[file]
    for file, content in made.items():
        if bundle.contents.get(file) != content:
            raise UserError(f"{file}: isn't what its options make of the model")
    return made


def kept_vectors(bundle: Bundle) -> tuple[Floats, Floats]:
    """Observations [N, d] in their units and the trained model's answers to them.

    Those of the bundle's own file, which holds thousands of a model without an integer form; else
    those of its manifest.

    Raises
    ------
    UserError
        When the file doesn't hold them, or others than the manifest's come first.
    """
    name = vectors_name(bundle.identifier)
    content = bundle.contents.get(name)
    if content is None:
        return bundle.values, bundle.probability
    try:
        tree = json.loads(content)
        values = np.array(tree["values"], dtype=np.float64)
        answers = np.array(tree["probability"], dtype=np.float64)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{name}: values and probability of each were expected") from None
    there = len(bundle.values)
    shapes = (values.ndim, values.shape[1:], len(answers), answers.shape[1:])
    if shapes != (2, bundle.values.shape[1:], len(values), bundle.probability.shape[1:]):
        raise UserError(f"{name}: rows of another shape than the manifest's")
    same = (values[:there] == bundle.values).all() and np.allclose(
        answers[:there], bundle.probability, rtol=1e-6, atol=1e-6
    )
    if not same or not np.isfinite(values).all() or not np.isfinite(answers).all():
        raise UserError(f"{name}: doesn't begin with the manifest's vectors")
    return values, answers


def _as_trained(options: Options) -> bool:
    return not options.int8 and options.batch is None


def stated(source: Source, options: Options, files: Mapping[str, bytes]) -> dict[str, Any]:
    """State for the manifest the opset, the batch, the number of states, and what int8 cost."""
    name = f"{source.identifier}.onnx"
    content = files[name]
    listed = described(content, source.features, source.feature_settings, name)
    listed["batch"] = batch_of(content, name)
    return listed | ({"int8": int8_loss(content, source)} if options.int8 else {})


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Answers on the stored vectors against the trained model's, within a tolerance.

    How often the float model and the integer form disagree, over the stored observations and random
    ones in range, is reported too: a few times is the price of integers, more is another model
    (:func:`export.params.differing_at_most`).
    """
    path = bundle.directory / f"{bundle.identifier}.onnx"
    content = path.read_bytes()
    listed = bundle.manifest["targets"]["onnx"]
    if ("int8" in listed) != bool(bundle.manifest["options"].get("int8")):
        raise CannotRun(f"{path.name}: the manifest's options and its int8 differ")
    found = described(content, bundle.features, bundle.settings, path.name)
    x = np.zeros((0, len(bundle.features)), dtype=np.int64)
    if bundle.form is not None and vectors is not None:
        start = vectors.counts["stored"]
        x = vectors.x[: start + params.random]
    stored, meant = kept_vectors(bundle)
    alone = [] if "int8" in listed or found["states"] else list(bundle.values[:ROWS_ALONE, None])
    batches = [stored, *alone, *([to_values(x, bundle.features)] if len(x) else [])]
    answers, *others = predict_apart(content, batches, path.name, work, params.timeout_s)
    if answers.shape != meant.shape:
        raise CannotRun(f"{path.name}: its answers haven't the shape of the stored ones")
    error = np.abs(answers - meant).reshape(len(answers), -1).max(axis=1)
    tolerance = tolerance_of(bundle.manifest.get("scaling", {}), params.tolerance)
    # Real scores may be of any size, and float32 keeps a fixed number of digits.
    tolerance *= size_of(meant, bundle.output.kind)
    if "int8" in listed:
        tolerance = max(tolerance, float(listed["int8"]["tolerance"]))
    report: dict[str, Any] = {
        "vectors": len(error),
        # Written so that a NaN counts as a mismatch.
        "mismatches": int((~(error <= tolerance)).sum()),
        "tolerance": tolerance,
        "largest_error": float(error.max()) if len(error) else 0.0,
        **found,
        "batch": batch_of(content, path.name),
    }
    if "int8" in listed:
        report["int8"] = listed["int8"]
    elif not found["states"]:
        # Quantised activations share one scale per batch, a float model's rows nothing.
        unlike = ~(np.abs(np.concatenate(others[: len(alone)]) - answers[:ROWS_ALONE]) <= tolerance)
        report["mismatches"] += int(unlike.reshape(len(alone), -1).any(axis=1).sum())
    if bundle.form is not None and len(x):
        if bundle.output.kind == "scores":
            differing = len(apart(real_scores(bundle.form, x), others[-1]))
        else:
            floats = decided(others[-1], bundle.threshold)
            differing = int((floats != bundle.form.evaluate(x).classes).sum())
        report["integer_form"] = {"vectors": len(x), "disagreements": differing}
        if differing > differing_at_most(len(x), "int8" in listed):
            report["mismatches"] += differing
            report["error"] = (
                f"{path.name}: decides otherwise than model.json on {differing} of {len(x)} "
                "observations: it is another model"
                + (": export it without passes" if bundle.manifest["passes"] else "")
            )
    return report
