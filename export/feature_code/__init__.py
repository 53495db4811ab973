"""Generates code that computes a model's features, exported beside the model.

A feature code generator is a module with

- ``carries(features) -> bool``: whether its code can compute these columns as they are defined now;
- ``emit(source, options) -> {file name: text}``: the code;
- ``settings(source, options) -> dict``: the settings that the code is made for, for the manifest;
- ``prove(bundle, params, work) -> dict``: runs the code and compares it with the features' own
  definition in Python.

In manifests and certificates (``targets.c`` and the report of target ``c``) the key of this code is
``companion``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from export.params import Options, VerifyParams
from export.source import Source
from features.spec import Feature
from models.families import POLICIES

GENERATORS: dict[str, str] = {
    "smartsbd": "export.feature_code.sbd",
    "smartsbd-plus-kernel": "export.feature_code.plus",
    **dict.fromkeys(POLICIES, "export.feature_code.policy"),
}
"""Family of features -> module of its feature code generator."""


class FeatureCodeGenerator(Protocol):
    """Functions of a feature code generator's module."""

    def carries(self, features: Sequence[Feature]) -> bool:
        """Whether the code can compute these columns."""
        ...

    def emit(self, source: Source, options: Options) -> Mapping[str, str]:
        """Make the code's files."""
        ...

    def settings(self, source: Source, options: Options) -> dict[str, Any]:
        """Settings that the files are made for."""
        ...

    def prove(self, bundle: Any, params: VerifyParams, work: Path) -> dict[str, Any]:
        """Run the files and compare their answers with the definition."""
        ...


def generator(family: str, features: Sequence[Feature]) -> FeatureCodeGenerator | None:
    """The feature code generator for these features; None if there is none."""
    if family not in GENERATORS:
        return None
    found = cast(FeatureCodeGenerator, importlib.import_module(GENERATORS[family]))
    return found if found.carries(features) else None
