"""``meta.json`` of a model: what it says, how it is read, and its checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from data.errors import UserError, one_line
from data.strict import Strict
from features.sbd import settings_for
from features.spec import Feature, schema_hash
from models.output import CLASSES, Output, State
from models.sbd.params import THRESHOLD

NAME = r"^[A-Za-z0-9_][A-Za-z0-9 ._+-]{0,99}$"
"""Of a model: it is a file's name, and stands in generated code."""
MAX_META_BYTES = 4 << 20


LATER = frozenset({"output", "states"})
"""Fields that came later: an entry that says nothing new by them is as it was before."""


class FeatureSpec(Strict):
    """A :class:`features.spec.Feature` as it stands in ``meta.json``."""

    name: str
    unit: str
    low: float | int
    high: float | int
    scale: int
    source: str
    doc: str


class Meta(Strict):
    """``meta.json``.

    Two keys of the file have names from before: ``scaling`` is the quantization error and ``seal``
    the checksum. A released entry never changes, so they stay.

    Attributes
    ----------
    name, version : str
        The zoo's name and the entry's version.
    kind : str
        tree, forest, linear where the model has an integer form, else the estimator's name.
    family : str
        Family of features (``smartsbd``, ``smartsbd-plus``).
    features : tuple of str
        Names in the order of the model's columns.
    feature_specs : tuple of FeatureSpec
        Their units, scales and ranges as they were when the model was trained.
    feature_settings : mapping
        What they were computed with when the model was trained: every setting of their family
        (:func:`features.sbd.settings_for`).
    schema_hash : str
        ``features.spec.schema_hash`` of both.
    data_hash, git_commit, created_by : str
        Training table, commit and command that made the model.
    labels : tuple of str
        Names of the classes, actions or scores. With two classes ``probability`` is of class 1;
        otherwise the answers are ``scores``, one per label.
    threshold : float
        Of two classes: class 1 where the probability is above it.
    output : Output
        What the answers are; left out of the file where they are classes.
    states : tuple of State
        What a recurrent model remembers; left out of the file where it is nothing.
    calibration, accumulation : mapping
        Settings of the trainer for verdicts over several windows.
    quantization_error : mapping
        Loss to integers as measured on the training table: ``rows``, ``disagreements``,
        ``disagreement_share`` and, with labels, ``accuracy_float``, ``accuracy_integer``; and
        ``float_error``, the largest error of the ONNX form's probability there.
    no_form : str
        Why the model has no integer form; empty where it has one.
    files : mapping
        Name -> SHA-256 of every other file but :data:`models.store.BESIDE`.
    checksum : str
        SHA-256 of all other fields as canonical JSON.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    name: str = Field(pattern=NAME)
    version: str = "1"
    kind: str
    family: str
    features: tuple[str, ...]
    feature_specs: tuple[FeatureSpec, ...]
    feature_settings: dict[str, Any] = Field(default_factory=dict)
    schema_hash: str
    data_hash: str = ""
    git_commit: str = ""
    created_by: str = ""
    labels: tuple[str, ...] = ("NSB", "SB")
    threshold: float = Field(THRESHOLD, ge=0, le=1)
    output: Output = CLASSES
    states: tuple[State, ...] = ()
    calibration: dict[str, Any] = Field(default_factory=dict)
    accumulation: dict[str, Any] = Field(default_factory=dict)
    quantization_error: dict[str, Any] = Field(default_factory=dict, alias="scaling")
    no_form: str = ""
    files: dict[str, str] = Field(default_factory=dict)
    checksum: str = Field("", alias="seal")

    @model_validator(mode="after")
    def _fits_together(self) -> Meta:
        if problem := self.output.problem(self.labels):
            raise ValueError(problem)
        return self

    def document(self) -> dict[str, Any]:
        """What ``meta.json`` holds: fields that most models don't need aren't there for those."""
        plain = {name for name in LATER if getattr(self, name) == self._default(name)}
        return self.model_dump(mode="json", exclude=plain)

    @classmethod
    def _default(cls, name: str) -> Any:
        return cls.model_fields[name].get_default()


def read_meta(directory: Path) -> Meta:
    """Read and validate an entry's ``meta.json``, whatever its checksum says.

    Raises
    ------
    UserError
        Where it can't be read, isn't JSON, or doesn't say what :class:`Meta` asks for.
    """
    path = directory / "meta.json"
    try:
        if path.stat().st_size > MAX_META_BYTES:
            raise ValueError("larger than any model's")
        tree = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(one_line(f"{path}: not readable as JSON: {error}: restore it")) from None
    if not isinstance(tree, Mapping):
        raise UserError(f"{path}: an object was expected at the top")
    try:
        return Meta.parse(tree, str(path))
    except UserError as error:
        raise UserError(one_line(str(error))) from None


def checksum_of(meta: Meta, directory: Path) -> str:
    """SHA-256 of all that ``meta.json`` says but itself; ``directory`` is for the message.

    Raises
    ------
    UserError
        Where it can't be written as JSON.
    """
    # An entry of the time before settings were kept has a checksum without the field.
    unknown = {"feature_settings"} - meta.model_fields_set
    try:
        tree = meta.document()
        for name in {"seal", *unknown}:
            tree.pop(name, None)
        text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
    except (ValueError, RecursionError):
        raise UserError(f"{directory}/meta.json: nested too deeply: restore it") from None


def with_settings(meta: Meta, where: str) -> Meta:
    """All settings of its features, also of an entry that was written before they were kept.

    Of such an entry they are taken to be the defaults, and its hash was of descriptions too: it
    gets the one that it would have now.
    """
    settings = settings_for(meta.family, meta.feature_settings, f"{where}: feature_settings")
    if "feature_settings" in meta.model_fields_set:
        return meta.model_copy(update={"feature_settings": settings})
    features = [Feature(**spec.model_dump()) for spec in meta.feature_specs]
    known = {"feature_settings": settings, "schema_hash": schema_hash(features, settings)}
    return meta.model_copy(update=known)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} isn't a number")
