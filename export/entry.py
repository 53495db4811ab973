"""Makes entries of the zoo: a fitted estimator is lowered, converted and kept with its answers."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from features.spec import Feature
    from models.output import Output
    from models.sbd.windows import Windows

STORED_VECTORS = 256
CONTENTS = 64
"""Stored observations of an entry whose observations are whole series."""


def sample(values: NDArray[np.float64], count: int = STORED_VECTORS) -> NDArray[np.float64]:
    """An even sample of rows [N, d], at most ``count`` of them."""
    import numpy as np

    return values[np.unique(np.linspace(0, len(values) - 1, count).astype(np.int64))]


def vectors_file(
    values: NDArray[np.float64], probability: NDArray[np.float64], kind: str = "classes"
) -> bytes:
    """``vectors.json``: rows [N, d], one a line, with the trained model's answers [N].

    ``kind`` is the output's: of ``scores`` significant digits are kept, else decimals.
    """
    from models.sbd.digits import probabilities, significant

    rows = ",\n  ".join(json.dumps(row) for row in values.tolist())
    kept = significant(probability) if kind == "scores" else probabilities(probability)
    answers = json.dumps(kept.tolist())
    return f'{{\n "probability": {answers},\n "values": [\n  {rows}\n ]\n}}\n'.encode()


def made_by(arguments: Sequence[str] | None = None) -> str:
    """The command that is running, as an entry records it: absolute paths by their last name alone.

    Where a machine keeps its files is no property of a model.
    """
    given = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["cczoo", *(Path(w).name if w.startswith("/") else w for w in given)])


def json_file(value: Mapping[str, Any]) -> bytes:
    """JSON as entries hold it."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def loss(
    floats: NDArray[np.int64], integers: NDArray[np.int64], truth: NDArray[np.int64] | None
) -> dict[str, Any]:
    """The quantization error: what rounding to integers changed (``scaling`` in files)."""
    from models.sbd.digits import FIGURE

    differing = int((floats != integers).sum())
    found: dict[str, Any] = {
        "rows": len(floats),
        "disagreements": differing,
        "disagreement_share": round(differing / len(floats), FIGURE),
    }
    if truth is not None:
        found["accuracy_float"] = round(float((floats == truth).mean()), FIGURE)
        found["accuracy_integer"] = round(float((integers == truth).mean()), FIGURE)
    return found


def final_name(estimator: Any) -> str:
    """Class of an estimator, of the last step if it is a pipeline."""
    while type(estimator).__name__ == "Pipeline":
        estimator = estimator.steps[-1][1]
    return type(estimator).__name__


def answered(
    estimator: Any, values: NDArray[np.float64], labels: tuple[str, ...], name: str
) -> NDArray[np.float64]:
    """A fitted estimator's answers on rows [N, d].

    Returns
    -------
    float64 array [N] or [N, labels]
        P(``labels[1]``) of two classes; else the probability of each label, 0 of one that training
        lacked, or a regressor's outputs.

    Raises
    ------
    UserError
        When a regressor's outputs aren't as many as its labels; ``name`` is the model's.
    """
    import numpy as np

    from export.lower.prepare import is_regressor, places_of
    from export.real_answers import real_answers
    from models.sbd.train.classifiers import probability

    if is_regressor(estimator):
        return real_answers(estimator, values, labels, name)
    if len(labels) == 2:
        return probability(estimator, values)
    found = np.zeros((len(values), len(labels)))
    found[:, list(places_of(estimator, labels))] = estimator.predict_proba(values)
    return found


def _output(estimator: Any, meta: Mapping[str, Any], labels: tuple[str, ...], name: str) -> Output:
    """What an entry's answers are: of a regressor real scores, unless its meta says more."""
    from export.lower.prepare import is_regressor
    from models.output import Output

    regressor = is_regressor(estimator)
    output = Output.parse(meta.get("output", {"kind": "scores"} if regressor else {}), name)
    problem = output.problem(labels)
    if regressor != (output.kind == "scores"):
        problem = "output.kind: a regressor's answers are scores, a classifier's classes or action"
    if problem:
        raise UserError(f"model {name!r}: {problem}")
    return output


def write_entry(
    name: str,
    estimator: Any,
    features: Sequence[Feature],
    meta: Mapping[str, Any],
    vectors: NDArray[np.float64],
    metrics: Mapping[str, Any],
    card: str,
    *,
    labels: NDArray[np.int64] | None = None,
    test: Windows | None = None,
    reference: bytes | None = None,
    zoo: Path | None = None,
) -> Path:
    """Lower a fitted estimator, convert it to ONNX and keep everything in the zoo.

    Parameters
    ----------
    name : str
        The zoo's name, such as ``smartsbd-dt``.
    estimator : fitted scikit-learn classifier or regressor
        Of two classes, the larger is ``labels[1]``; of more, classes are labels or their indices;
        a regressor has an output per label. Scalers in a ``Pipeline`` and, of two classes, a
        ``CalibratedClassifierCV(ensemble=False)`` are understood.
    features : sequence of Feature
        The columns that it was fitted on, in order.
    meta : mapping
        Fields of :class:`models.meta.Meta` that only training knows: ``family`` at least;
        ``version``, ``data_hash``, ``git_commit``, ``created_by``, ``threshold``,
        ``calibration``, ``accumulation``, ``labels``, ``output``; ``feature_settings`` if the
        vectors weren't computed with the defaults.
    vectors : float64 array [N, d]
        Observations, best the whole training table: the loss to integers is measured on all of
        them, and an even sample of their fixed-point values is kept with the estimator's answers.
    metrics : mapping
        For ``metrics.json``.
    card : str
        For ``card.md``.
    labels : int64 array [N], optional
        True classes of ``vectors``; adds accuracies to the measured loss.
    test : Windows, optional
        Labelled rows that training didn't see, for ``test.json``.
    reference : bytes, optional
        ``reference.json``: :func:`models.sbd.drift.reference.dumps`.
    zoo : Path, optional
        Where to write it, ``models/trained`` by default.

    Returns
    -------
    Path
        The entry's directory.

    Raises
    ------
    UserError
        When ``meta`` has wrong keys, ``vectors`` hold no finite row, or a regressor's outputs
        aren't as many as its labels.
    """
    import numpy as np

    from export.document import dumps
    from export.fixed import to_integers
    from export.loss import apart, real_scores, size_of
    from export.lower import NotLowerable, lower
    from export.onnx_file import convert
    from export.onnx_run import decided, predict
    from export.params import WORST_FLOAT_ERROR
    from export.source import with_scale
    from features.grid import on_grid
    from features.sbd import settings_for
    from features.spec import schema_hash
    from models import store
    from models.output import CLASSES
    from models.sbd import digits
    from models.sbd.drift import reference as references
    from models.sbd.evaluate import testset
    from models.sbd.params import THRESHOLD

    names = tuple(meta.get("labels", ("NSB", "SB")))
    output = _output(estimator, meta, names, name)
    threshold = float(meta.get("threshold", THRESHOLD))
    values = np.asarray(vectors, dtype=np.float64)
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        raise UserError(f"model {name!r}: no row of the training table is finite in all features")
    values = values[finite]
    truth = None if labels is None else np.asarray(labels)[finite]
    probability = answered(estimator, values, names, name)
    settings = settings_for(meta.get("family", ""), meta.get("feature_settings", {}))
    metadata = {} if output == CLASSES else {"output": json.dumps(output.model_dump(mode="json"))}
    onnx = convert(estimator, features, name, names, settings, metadata)
    # Float32 against float64: a kernel machine with a large C sums thousands of large terms.
    float_error = float(np.abs(predict(onnx, values, name) - probability).max())
    size = size_of(probability, output.kind)
    float_error /= size
    if not float_error <= WORST_FLOAT_ERROR:
        raise UserError(
            f"model {name!r}: its ONNX form errs by {float_error:.2g}: use a smaller C or depth"
        )
    kept = on_grid(sample(values), features)
    files = {
        "model.onnx": onnx,
        "metrics.json": json_file(digits.rounded(metrics)),
        "card.md": card.encode(),
        "vectors.json": vectors_file(kept, answered(estimator, kept, names, name), output.kind),
    }
    described: dict[str, Any] = {
        **meta,
        "name": name,
        "kind": final_name(estimator),
        "features": [f.name for f in features],
        "feature_specs": [asdict(f) for f in features],
        "feature_settings": settings,
        "schema_hash": schema_hash(features, settings),
        "labels": names,
    }
    try:
        form = lower(estimator, features, names, threshold)
    except NotLowerable as error:
        described["no_form"] = str(error)
    else:
        files["model.json"] = dumps(form).encode()
        integers = to_integers(values, features)
        described["kind"] = form.kind
        output = with_scale(output, form)
        if output.kind == "scores":
            found = real_scores(form, integers)
            largest = float(np.abs(found - probability).max()) / size
            described["scaling"] = {
                "rows": len(values),
                "disagreements": len(apart(found, probability)),
                "largest_error": digits.bound(largest),
            }
        else:
            floats = decided(probability, threshold)
            described["scaling"] = loss(floats, form.evaluate(integers).classes, truth)
    described["output"] = output.model_dump(mode="json")
    described["scaling"] = {
        **described.get("scaling", {}),
        "float_error": digits.bound(float_error),
    }
    if test is not None and len(test):
        test = digits.stored(test, features)
        columns = [feature.name for feature in features]
        rows = test.matrix(columns)
        answers = {"model.onnx": decided(predict(onnx, rows, name), threshold)}
        if "model.json" in files:
            answers["model.json"] = form.evaluate(to_integers(rows, features)).classes
        files[testset.FILE] = testset.dump(test, columns, answers)
    if reference is not None:
        files[references.FILE] = reference
    return store.save((zoo or store.TRAINED) / name, described, files).directory
