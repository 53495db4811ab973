"""Reads a float model given as an ONNX file, with what its metadata state about it."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np

from data.errors import UserError
from export.fixed import limits, to_values
from export.lower.prepare import NotLowerable
from export.lower.tree_file import lower_file
from export.onnx.metadata import properties
from export.onnx.run import predict
from export.source import Source, with_scale
from features.spec import Feature
from models.onnx_safe import parsed
from models.output import Output

STORED = 256


def source_from_onnx(path: Path) -> Source:
    """An ONNX file as exporters take it, see :func:`source_from_bytes`.

    Raises
    ------
    UserError
        When the file can't be read or run, or its metadata don't describe its features.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: give a readable ONNX file") from None
    return source_from_bytes(content, path.stem, str(path))


def source_from_bytes(content: bytes, name: str, path: str) -> Source:
    """An ONNX file's content as exporters take it.

    Its metadata are those of :func:`export.onnx.file.metadata`. Having no data of its own, it gets
    observations drawn from its features' ranges.

    Parameters
    ----------
    content : bytes
    name : str
        Of the model.
    path : str
        Where it is from, for messages.

    Raises
    ------
    UserError
        When it can't be run, or its metadata don't describe its features.
    """
    metadata = properties(parsed(content, path))
    try:
        specs = [Feature(**spec) for spec in json.loads(metadata["feature_specs"])]
        labels = tuple(str(label) for label in json.loads(metadata["labels"]))
        low, high = limits(specs)
        settings = dict(json.loads(metadata.get("feature_settings", "{}")))
        output = Output.parse(json.loads(metadata.get("output", "{}")), f"{path}: output")
    except (KeyError, TypeError, ValueError) as error:
        names = ", ".join(f.name for f in fields(Feature))
        raise UserError(
            f"{path}: its metadata must hold feature_specs ({names} of each) and labels as JSON: "
            f"{type(error).__name__} {error}: write them with export.onnx.file.metadata"
        ) from None
    if problem := output.problem(labels):
        raise UserError(f"{path}: its metadata: {problem}")
    features = tuple(specs)
    try:
        threshold = float(metadata.get("threshold", 0.5))
    except ValueError:
        raise UserError(f"{path}: metadata threshold: a number was expected") from None
    form, no_form = None, ""
    try:
        form = lower_file(content, features, labels, threshold, output.kind)
    except NotLowerable as error:
        no_form = str(error)
    drawn = np.random.default_rng(0).integers(low, high, (STORED, len(low)), endpoint=True)
    values = to_values(drawn, features)
    return Source(
        name=name,
        version="1",
        family=metadata.get("family", "onnx"),
        kind="network" if form is None else form.kind,
        features=features,
        labels=labels,
        threshold=threshold,
        form=form,
        no_form=no_form,
        onnx=content,
        values=values,
        probability=predict(content, values, path),
        feature_settings=settings,
        output=with_scale(output, form),
    )
