"""What travels beside an exported model: the computation of its features.

A companion is a module with

- ``carries(features) -> bool``: whether it can compute these columns, as they are defined now;
- ``emit(source, options) -> {file name: text}``;
- ``settings(source, options) -> dict``: what was baked in, for the manifest;
- ``check(bundle, params, work) -> dict``: runs its file against the meaning of the features.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from export.params import Options, VerifyParams
from export.source import Source
from features.spec import Feature

COMPANIONS: dict[str, str] = {
    "smartsbd": "export.companions.sbd",
}
"""Family of features -> module."""


class Companion(Protocol):
    """What a companion's module holds."""

    def carries(self, features: Sequence[Feature]) -> bool:
        """Whether it can compute these columns."""
        ...

    def emit(self, source: Source, options: Options) -> Mapping[str, str]:
        """Make the companion's files."""
        ...

    def settings(self, source: Source, options: Options) -> dict[str, Any]:
        """What the files are made for."""
        ...

    def check(self, bundle: Any, params: VerifyParams, work: Path) -> dict[str, Any]:
        """Run the files and compare."""
        ...


def companion(family: str, features: Sequence[Feature]) -> Companion | None:
    """The companion that computes these features, None where there is none."""
    if family not in COMPANIONS:
        return None
    found = cast(Companion, importlib.import_module(COMPANIONS[family]))
    return found if found.carries(features) else None
