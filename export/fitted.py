"""A fitted scikit-learn estimator in every form that an entry keeps of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.description import sample
from export.loss import in_integers, size_of
from export.lower import NotLowerable, lower
from export.lower.prepare import is_regressor, places_of
from export.onnx.file import convert
from export.onnx.real_answers import real_answers
from export.onnx.run import predict
from export.params import WORST_FLOAT_ERROR
from export.source import Source, with_scale
from features.grid import on_grid
from features.sbd import settings_for
from features.spec import Feature
from models.output import CLASSES, Output
from models.sbd import digits
from models.sbd.params import THRESHOLD
from models.sbd.train.classifiers import probability


def source_of_fitted(
    name: str,
    estimator: Any,
    features: Sequence[Feature],
    meta: Mapping[str, Any],
    values: NDArray[np.float64],
    truth: NDArray[np.int64] | None,
) -> Source:
    """Lower an estimator and convert it to ONNX, and measure what either changes.

    Parameters
    ----------
    name, estimator, features, meta
        As for :func:`export.entry.describe_fitted`.
    values : float array [n, d]
        Finite observations; a sample of them is kept with the estimator's answers.
    truth : int array [n] or None
        Their true classes.

    Raises
    ------
    UserError
        When its answers aren't what ``meta`` says that they are, or float32 is too coarse for it.
    """
    names = tuple(meta.get("labels", ("NSB", "SB")))
    output = _output(estimator, meta, names, name)
    family = str(meta.get("family", ""))
    settings = settings_for(family, meta.get("feature_settings", {}))
    said = {} if output == CLASSES else {"output": json.dumps(output.model_dump(mode="json"))}
    kept = on_grid(sample(values), features)
    source = Source(
        name=name,
        version=str(meta.get("version", "1")),
        family=family,
        kind=_final_name(estimator),
        features=tuple(features),
        labels=names,
        threshold=float(meta.get("threshold", THRESHOLD)),
        form=None,
        no_form="",
        onnx=convert(estimator, features, name, names, settings, said),
        values=kept,
        probability=answered(estimator, kept, names, name),
        feature_settings=settings,
        output=output,
    )
    answers = answered(estimator, values, names, name)
    error = {"float_error": _float_error(source, values, answers)}
    try:
        form = lower(estimator, features, names, source.threshold)
    except NotLowerable as reason:
        return replace(source, no_form=str(reason), quantization_error=error)
    source = replace(source, form=form, kind=form.kind, output=with_scale(output, form))
    measured = in_integers(source, values, answers, truth) | error
    return replace(source, quantization_error=measured)


def answered(
    estimator: Any, values: NDArray[np.float64], labels: tuple[str, ...], name: str
) -> NDArray[np.float64]:
    """A fitted estimator's answers on rows [n, d].

    Returns
    -------
    float64 array [n] or [n, labels]
        P(``labels[1]``) of two classes; else the probability of each label, 0 of one that training
        lacked, or a regressor's outputs.

    Raises
    ------
    UserError
        When a regressor's outputs aren't as many as its labels; ``name`` is the model's.
    """
    if is_regressor(estimator):
        return real_answers(estimator, values, labels, name)
    if len(labels) == 2:
        return probability(estimator, values)
    found = np.zeros((len(values), len(labels)))
    found[:, list(places_of(estimator, labels))] = estimator.predict_proba(values)
    return found


def _float_error(
    source: Source, values: NDArray[np.float64], answers: NDArray[np.float64]
) -> float:
    """Largest error of the ONNX form, a bound of it that any machine finds.

    It is float32 against float64: a kernel machine with a large C sums thousands of large terms.
    """
    error = float(np.abs(predict(source.onnx, values, source.name) - answers).max())
    error /= size_of(answers, source.output.kind)
    if not error <= WORST_FLOAT_ERROR:
        raise UserError(
            f"model {source.name!r}: its ONNX form errs by {error:.2g}: use a smaller C or depth"
        )
    return digits.bound(error)


def _final_name(estimator: Any) -> str:
    """Class of an estimator, of the last step where it is a pipeline."""
    while type(estimator).__name__ == "Pipeline":
        estimator = estimator.steps[-1][1]
    return type(estimator).__name__


def _output(estimator: Any, meta: Mapping[str, Any], labels: tuple[str, ...], name: str) -> Output:
    """What an entry's answers are: of a regressor real scores, unless its meta says more."""
    regressor = is_regressor(estimator)
    output = Output.parse(meta.get("output", {"kind": "scores"} if regressor else {}), name)
    problem = output.problem(labels)
    if regressor != (output.kind == "scores"):
        problem = "output.kind: a regressor's answers are scores, a classifier's classes or action"
    if problem:
        raise UserError(f"model {name!r}: {problem}")
    return output
