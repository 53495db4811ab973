"""Exports the form itself, as canonical JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from export.bundle.certificate import compared
from export.bundle.manifest import FORM, Bundle
from export.document import dumps, loads
from export.params import Options, VerifyParams
from export.source import Source
from export.toolchain.harness import CannotRun
from export.vectors import Vectors

SUMMARY = "the intermediate form: canonical, diffable JSON"


def emit(source: Source, options: Options) -> dict[str, str]:
    """``model.json``, which every bundle with a form has anyway."""
    if source.form is None:
        raise ValueError("the JSON target needs a form")
    return {FORM: dumps(source.form)}


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Read it again, and write it again: the same bytes and the same answers."""
    if bundle.form is None or vectors is None:
        raise CannotRun("the bundle has no form to compare with")
    (path,) = bundle.files("json")
    form = loads(path.read_bytes(), path.name)
    if dumps(form).encode() != path.read_bytes():
        raise CannotRun(f"{path.name} isn't in canonical form: export it again")
    return compared(bundle.form, vectors.x, form.evaluate(vectors.x), vectors.counts)
