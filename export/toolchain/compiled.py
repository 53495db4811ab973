"""Proves a generated header that carries a form: its answers, its cost, and sanitizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from export.bundle.certificate import compared
from export.ir import Form
from export.params import VerifyParams
from export.toolchain.harness import build
from export.toolchain.sanitize import sanitized
from export.vectors import Vectors, timing_rows


def prove_header(
    header: Path,
    identifier: str,
    form: Form,
    vectors: Vectors,
    params: VerifyParams,
    work: Path,
    unit: str | None = None,
) -> dict[str, Any]:
    """Compile as a kernel would, run every vector, compare, time, and run it under sanitizers.

    Parameters
    ----------
    header : Path
    identifier : str
        Prefix of its names.
    form : Form
        Its meaning.
    vectors : Vectors
    params : VerifyParams
    work : Path
        An existing directory.
    unit : str, optional
        As :func:`export.toolchain.harness.build` takes it.

    Returns
    -------
    dict
        As :func:`export.bundle.certificate.compared`, and ``compiler``, ``flags``,
        ``ns_per_decision``, ``object_bytes``, ``stack_bytes``, ``sanitized``.

    Raises
    ------
    CannotRun
    """
    made = (header, identifier, work, params.timeout_s)
    program = build(*made, outputs=form.outputs, unit=unit)
    answers = program.run(vectors.x, params.timeout_s)
    return {
        **compared(form, vectors.x, answers, vectors.counts),
        "compiler": program.compiler,
        "flags": program.flags,
        "ns_per_decision": program.ns_per_decision(
            timing_rows(form, params.seed), params.timeout_s
        ),
        "object_bytes": program.object_bytes,
        "stack_bytes": program.stack_bytes,
        "sanitized": sanitized(*made, vectors.x, answers, outputs=form.outputs, unit=unit),
    }
