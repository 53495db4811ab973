"""Defines what ``manifest.json`` and ``certificate.json`` may hold: frozen, strict, bounded."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from data.strict import Strict
from export.fixed import INT32_MAX, INT32_MIN
from export.ir import MAX_FEATURES
from export.params import WORST_FLOAT_ERROR, WORST_INT8_ERROR
from export.source import identifier
from models.meta import NAME
from models.output import Output, OutputKind

FORMAT = "cczoo-bundle"
VERSION = 2
STORED_VECTORS = 64
"""Most vectors in a manifest, which people read; verification makes thousands more."""
WIDEST_VALUE = 1e30
"""A value of an observation: scaled, it must stay a finite float."""

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,159}$")]
"""A plain name: no folder, nothing hidden, nothing above."""
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
"""Safe as (part of) a name in C and in Python."""
Name = Annotated[str, StringConstraints(pattern=NAME)]
"""A model's name: it stands in comments, strings and file names of generated code."""
Text = Annotated[str, StringConstraints(max_length=4096)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Value = Annotated[float, Field(allow_inf_nan=False, ge=-WIDEST_VALUE, le=WIDEST_VALUE)]
Integer = Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX)]
Wide = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Document(Strict):
    """Base of what is read from a bundle: an integer is no text, and a number no truth value."""

    model_config = ConfigDict(strict=True)


class Spec(Document):
    """A :class:`features.spec.Feature`."""

    name: Word
    unit: Text
    low: Number
    high: Number
    scale: int = Field(ge=1, le=INT32_MAX)
    source: Text
    doc: Text


class Column(Document):
    """One feature, and its range in integers."""

    index: int = Field(ge=0, lt=MAX_FEATURES)
    spec: Spec
    low_integer: Integer
    high_integer: Integer


class Vector(Document):
    """A stored observation with the model's answer."""

    values: list[Value] = Field(max_length=MAX_FEATURES)
    features: list[Integer] = Field(max_length=MAX_FEATURES)
    probability: Number | list[Number]
    class_: int = Field(alias="class", ge=0, lt=1 << 16)
    score: Wide | list[Wide] | None = None


class Answers(Document):
    """A :class:`models.output.Output`."""

    kind: OutputKind
    units: list[Text] = Field(max_length=256)
    scale: int | None = Field(ge=1, le=2**62)


class Int8(Document):
    """What 8-bit weights cost; ``tolerance`` is what verification allows."""

    model_config = ConfigDict(extra="allow")

    tolerance: float = Field(ge=0, le=1.5 * WORST_INT8_ERROR, allow_inf_nan=False)


class Target(Document):
    """One target: its files, and what else its emitter stated."""

    model_config = ConfigDict(extra="allow")

    files: list[FileName] = Field(min_length=1, max_length=64)
    companion: dict[str, Any] = Field(default_factory=dict)
    disagreement: dict[str, Any] = Field(default_factory=dict)
    drift: dict[str, Any] = Field(default_factory=dict)
    int8: Int8 = Int8(tolerance=0)


class Scaling(Document):
    """The quantization error; ``float_error`` widens the tolerance of the float model."""

    model_config = ConfigDict(extra="allow")

    float_error: float = Field(0.0, ge=0, le=WORST_FLOAT_ERROR)


class Manifest(Document):
    """``manifest.json`` without its own hash; docs/deploy.md describes it."""

    format: Literal["cczoo-bundle"]
    version: int = Field(ge=VERSION, le=VERSION)
    cczoo_version: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z.+!-]{1,64}$")]
    name: Name
    identifier: Word
    model_version: Text
    family: Text
    kind: Text
    labels: list[Label] = Field(min_length=1, max_length=256)
    threshold: float = Field(ge=0, le=1, allow_inf_nan=False)
    output: Answers = Answers(kind="classes", units=[], scale=None)
    verdicts: dict[str, float] = Field(default_factory=dict)
    cut: Wide | None  # the form's decision_threshold
    features: list[Column] = Field(min_length=1, max_length=MAX_FEATURES)
    feature_settings: dict[str, Any] = Field(default_factory=dict)
    schema_hash: Hash
    model_hash: Hash
    source_model_hash: Hash
    passes: list[dict[str, int | str]] = Field(max_length=16)
    options: dict[str, Any]
    targets: dict[Text, Target] = Field(max_length=16)
    files: dict[FileName, Hash] = Field(max_length=128)
    vectors: list[Vector] = Field(max_length=STORED_VECTORS)
    scaling: Scaling
    created_by: Text

    @model_validator(mode="after")
    def _fits_together(self) -> Manifest:
        if self.identifier != identifier(self.name):
            raise ValueError("identifier: isn't that of the name")
        output = Output(**self.output.model_dump())
        if problem := output.problem(tuple(self.labels)):
            raise ValueError(problem)
        width, answers = len(self.features), set()
        for i, row in enumerate(self.vectors):
            if len(row.values) != width or len(row.features) != width:
                raise ValueError(f"vectors.{i}: {width} values and {width} features were expected")
            answers.add(len(row.probability) if isinstance(row.probability, list) else 0)
        if len(answers) > 1 or not answers <= {0, len(self.labels)}:
            raise ValueError("vectors: one probability each, or one score per label")
        if "onnx" in self.targets and not self.vectors:
            raise ValueError("vectors: the onnx target needs one or more")
        claimed = {name for target in self.targets.values() for name in target.files}
        for name in sorted(claimed - self.files.keys()):
            raise ValueError(f"targets: {name} isn't in files")
        for name in sorted(self.files.keys() - claimed - {"model.json"}):
            raise ValueError(f"files: {name} belongs to no target")
        return self


class Certificate(Document):
    """``certificate.json`` without its own hash; see docs/certificate.md."""

    model_config = ConfigDict(extra="allow")

    format: Literal["cczoo-certificate"]
    version: Literal[1]
    ok: bool
    manifest_hash: Hash
    problems: list[Text] = Field(max_length=1024)
    targets: list[dict[str, Any]] = Field(max_length=16)
    machine: Text
    cpu: Text
    system: Text
    release: Text
