"""Defines what a target gets: a model in every form that it has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.document import loads, model_hash
from export.ir import Form
from features.spec import Feature, schema_hash
from models.output import CLASSES, Output

if TYPE_CHECKING:
    from models.store import ZooModel


@dataclass(frozen=True)
class Source:
    """A model ready for export.

    Attributes
    ----------
    name, version, family : str
        As in the zoo.
    kind : str
        The form's kind, or the estimator's name if there is no form.
    features : tuple of Feature
        The model's columns.
    labels : tuple of str
    threshold : float
        Decision threshold on the probability of ``labels[1]``.
    form : Form or None
        The integer form; None if the model has none.
    no_form : str
        Why there is none.
    onnx : bytes
        The float model; empty if there is none.
    values : float64 array [N, d]
        Observations. A model with a state sees the rows as one sequence.
    probability : float64 array [N] or [N, labels]
        The trained model's answers on them: probabilities of ``labels[1]``, or scores of more
        classes, actions or real values.
    quantization_error : dict
        What rounding to integers changed, as measured in training; files call it ``scaling``.
    passes : tuple of dict
        What was done to the form since, see :mod:`export.passes`.
    source_model_hash : str
        Hash of the form before that.
    feature_settings : dict
        What the features are computed with, :func:`features.sbd.settings_for` of their family.
    output : Output
        What its answers are.
    verdicts : dict
        Calibration and accumulation as ``meta.json`` has them, if the model's state is bounded and
        so travels into exported code; else empty.
    """

    name: str
    version: str
    family: str
    kind: str
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    threshold: float
    form: Form | None
    no_form: str
    onnx: bytes
    values: NDArray[np.float64]
    probability: NDArray[np.float64]
    quantization_error: dict[str, Any] = field(default_factory=dict)
    passes: tuple[dict[str, Any], ...] = ()
    source_model_hash: str = ""
    feature_settings: dict[str, Any] = field(default_factory=dict)
    output: Output = CLASSES
    verdicts: dict[str, Any] = field(default_factory=dict)

    @property
    def identifier(self) -> str:
        """The name as C and Python can use it."""
        return identifier(self.name)

    @cached_property
    def model_hash(self) -> str:
        """SHA-256 of the form, or of the ONNX file if there is no form."""
        if self.form is not None:
            return model_hash(self.form)
        return hashlib.sha256(self.onnx).hexdigest()

    @property
    def schema_hash(self) -> str:
        """Hash of the features' definitions and settings."""
        return schema_hash(self.features, self.feature_settings)


def with_scale(output: Output, form: Form | None) -> Output:
    """The output with the scale that real scores have in an integer form."""
    places = getattr(form, "places", None)
    if output.kind != "scores" or places is None:
        return output
    return output.model_copy(update={"scale": 1 << int(places)})


def identifier(name: str) -> str:
    """A name with everything but letters, digits and underscores replaced by underscores."""
    text = re.sub(r"[^0-9a-zA-Z_]", "_", name)
    return f"m_{text}" if not text or text[0].isdigit() else text


def source_of(model: ZooModel) -> Source:
    """A zoo entry as exporters take it.

    Raises
    ------
    UserError
        When its ``model.json`` isn't a form, or its ``vectors.json`` no stored answers.
    """
    meta = model.meta
    form = None
    if "model.json" in meta.files:
        form = loads(model.read("model.json"), str(model.directory / "model.json"))
    vectors = model.read_json("vectors.json")
    try:
        values = np.array(vectors["values"], dtype=np.float64).reshape(-1, len(meta.features))
        probability = np.array(vectors["probability"], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{model.directory}/vectors.json: values and probability of each were expected: "
            "restore it or train again"
        ) from None
    return Source(
        name=meta.name,
        version=meta.version,
        family=meta.family,
        kind=meta.kind,
        features=model.features,
        labels=meta.labels,
        threshold=meta.threshold,
        form=form,
        no_form=meta.no_form,
        onnx=model.read("model.onnx") if "model.onnx" in meta.files else b"",
        values=values,
        probability=probability,
        quantization_error=meta.quantization_error,  # so meta.json calls it
        feature_settings=meta.feature_settings,
        output=with_scale(meta.output, form),
        verdicts=_verdicts(meta.calibration, meta.accumulation),
    )


def _verdicts(calibration: Mapping[str, Any], accumulation: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: calibration[name] for name in ("slope", "offset") if name in calibration}
    return {**numbers, **accumulation} if accumulation.get("bound") else {}
