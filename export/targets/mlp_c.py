"""Exports a small network as integer C99 (the idea of LiteFlow), with what integers cost it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from export.bundle.manifest import Bundle
from export.fixed import to_integers, to_values
from export.ir import Ints
from export.loss import disagreements, measured
from export.onnx.run import decided, predict
from export.params import Options, VerifyParams
from export.render import render
from export.source import Source
from export.toolchain.compiled import prove_header
from export.toolchain.harness import CannotRun
from export.vectors import Vectors
from models.stats.calibration import sigmoid

SUMMARY = "small network in integer C99, feed-forward (as c) or gru and lstm with explicit state"
TEMPLATES = {
    "mlp": ("c.h.j2", "c_mlp.j2"),
    "gru": ("c_recurrent.j2", "c_recurrent_cell.j2"),
    "lstm": ("c_recurrent.j2", "c_recurrent_cell.j2"),
}
"""Form's kind -> the header's template and the template of its scoring."""
DRIFT_STEPS = 1000


def emit(source: Source, options: Options) -> dict[str, str]:
    """One header, ``<identifier>.h``."""
    form = source.form
    if form is None:
        raise ValueError("the network target needs a form")
    header, scoring = TEMPLATES[form.kind]
    return {f"{source.identifier}.h": render(header, source=source, form=form, scoring=scoring)}


def stated(source: Source, options: Options, files: Mapping[str, bytes]) -> dict[str, Any]:
    """State for the manifest how the integers differ from the float model if there is one."""
    form = source.form
    if form is None or not source.onnx:
        return {}

    def floats(x: Ints) -> Any:
        return predict(source.onnx, to_values(x, source.features), source.name)

    def decide(x: Ints) -> Ints:
        return decided(floats(x), source.threshold)

    return {
        "disagreement": measured(source, lambda x: form.evaluate(x).classes, decide),
        "drift": _drift(source, floats),
    }


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Compile as a kernel would, run every vector, compare and time."""
    form = bundle.form
    if form is None or vectors is None:
        raise CannotRun("the bundle has no form to compare with")
    (header,) = bundle.files("mlp-c")
    unit = None if form.kind == "mlp" else stateful_unit(bundle.identifier, form.outputs)
    report = prove_header(header, bundle.identifier, form, vectors, params, work, unit)
    listed = bundle.manifest["targets"]["mlp-c"]
    answers = decided(bundle.probability, bundle.threshold)
    found = disagreements(form.evaluate(bundle.integers).classes, answers)
    loss = {**listed.get("disagreement", {}), "stored_in_bundle": found}
    return report | {"disagreement": loss, "drift": listed.get("drift", {})}


def stateful_unit(identifier: str, outputs: int) -> str:
    """The driver's functions around a header with a state: the rows are one sequence."""
    return (
        '#include "model.h"\n'
        "int model_answer(const int32_t *f, int64_t *scores);\n"
        "int model_classify(const int32_t *f);\n"
        f"static struct {identifier}_state state;\n"
        "int model_answer(const int32_t *f, int64_t *scores)\n"
        f"{{ return {identifier}_step(&state, f, scores); }}\n"
        "int model_classify(const int32_t *f)\n"
        f"{{ int64_t scores[{outputs}]; return {identifier}_step(&state, f, scores); }}\n"
    )


def _drift(source: Source, floats: Any) -> dict[str, float]:
    """Largest difference of the answers over a sequence of stored observations, again and again.

    The answers are probabilities if the model has one, else scores.
    """
    form: Any = source.form
    rows = len(source.values)
    if not rows:
        return {}
    stored = to_integers(source.values, source.features)
    x = stored[np.random.default_rng(2).integers(0, rows, DRIFT_STEPS)]
    scores = form.evaluate(x).scores / 2.0**form.places
    ours = sigmoid(scores) if form.outputs < len(form.labels) else scores
    theirs = floats(x)
    error = np.abs(ours.reshape(theirs.shape) - theirs).reshape(DRIFT_STEPS, -1).max(axis=1)
    first, last = error[: DRIFT_STEPS // 10].max(), error[-DRIFT_STEPS // 10 :].max()
    return {"steps": DRIFT_STEPS, "largest": float(error.max()), "first_tenth": float(first),
            "last_tenth": float(last)}  # fmt: skip
