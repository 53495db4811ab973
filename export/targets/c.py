"""Exports a C99 header: integers only, no recursion, no allocation, no libc."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import UserError
from export.bundle.certificate import compared
from export.bundle.manifest import Bundle
from export.feature_code import generator
from export.forms.forest import Forest
from export.forms.program import Program
from export.forms.tree import Tree
from export.forms.trees import Trees
from export.ir import Form
from export.params import Options, VerifyParams
from export.program.code import unit, values
from export.render import render
from export.source import Source
from export.targets import emit as emit_target
from export.toolchain.harness import CannotRun, build
from export.toolchain.sanitize import sanitized
from export.vectors import Vectors, timing_rows

SUMMARY = "C99 header for kernels and proxies (integers only; --layout if-else, array or auto)"
TEMPLATES: dict[tuple[str, str], str] = {
    ("tree", "if-else"): "c_if_else.j2",
    ("tree", "array"): "c_array.j2",
    ("forest", "if-else"): "c_if_else.j2",
    ("forest", "array"): "c_array.j2",
    ("trees", "if-else"): "c_trees_if_else.j2",
    ("trees", "array"): "c_trees_array.j2",
    ("linear", ""): "c_linear.j2",
    ("lut", ""): "c_lut.j2",
    ("mlp", ""): "c_mlp.j2",
    ("rbf", ""): "c_rbf.j2",
    ("program", ""): "c_program_steps.j2",
}
"""(form's kind, layout or "" if the kind has one only) -> the template of its scoring."""
HEADERS = {"trees": "c_trees.h.j2", "program": "c_program.j2"}
"""Form's kind -> the header's template if it isn't the usual one."""


def emit(source: Source, options: Options) -> dict[str, str]:
    """One header, ``<identifier>.h``."""
    form = source.form
    if form is None:
        raise ValueError("the C target needs a form")
    scoring = TEMPLATES[form.kind, layout_of(form, options)]
    header = HEADERS.get(form.kind, "c.h.j2")
    more = values(form) if isinstance(form, Program) else {}
    text = render(header, source=source, form=form, scoring=scoring, **more)
    beside = generator(source.family, source.features)
    files = {} if beside is None else beside.emit(source, options)
    return {f"{source.identifier}.h": text, **files}


def layout_of(form: Form | None, options: Options) -> str:
    """Layout in which a form is written; "" if its kind has one only.

    By itself a tree becomes nested ifs and a forest arrays, whichever was measured to be the
    faster (``benchmarks/exporters.py``).
    """
    if not isinstance(form, Tree | Forest | Trees):
        return ""
    if options.layout == "auto":
        return "array" if len(form.trees) > 1 or form.kind == "forest" else "if-else"
    return options.layout


def stated(source: Source, options: Options, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Layout of the trees, and the settings of the feature code if there is some."""
    beside = generator(source.family, source.features)
    layout = layout_of(source.form, options)
    return {
        **({"layout": layout} if layout else {}),
        **({} if beside is None else {"companion": beside.settings(source, options)}),
    }


def again(bundle: Bundle, source: Source, options: Options) -> dict[str, bytes]:
    """Make the files again; what the manifest states of them must be so, since proofs rely on it.

    Raises
    ------
    UserError
        When it isn't.
    """
    listed = {k: v for k, v in bundle.manifest["targets"]["c"].items() if k != "files"}
    made = emit_target("c", source, options)
    if listed != stated(source, options, made):
        raise UserError("layout and feature code aren't those of its options")
    return made


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Compile as a kernel would, run every vector, compare and time."""
    if bundle.form is None or vectors is None:
        raise CannotRun("the bundle has no form to compare with")
    header = bundle.directory / f"{bundle.identifier}.h"
    how: dict[str, Any] = {"outputs": bundle.form.outputs}
    if isinstance(bundle.form, Program):
        how["unit"] = unit(bundle.identifier, bundle.form)
    made = (header, bundle.identifier, work, params.timeout_s)
    program = build(*made, **how)
    answers = program.run(vectors.x, params.timeout_s)
    report = {
        **compared(bundle.form, vectors.x, answers, vectors.counts),
        "compiler": program.compiler,
        "flags": program.flags,
        "ns_per_decision": program.ns_per_decision(
            timing_rows(bundle.form, params.seed), params.timeout_s
        ),
        "object_bytes": program.object_bytes,
        "stack_bytes": program.stack_bytes,
        "sanitized": sanitized(*made, vectors.x, answers, **how),
    }
    if "companion" in bundle.manifest["targets"]["c"]:
        beside = generator(bundle.manifest["family"], bundle.features)
        if beside is None:
            raise CannotRun("its features are defined otherwise by now: export it again")
        report["companion"] = found = beside.prove(bundle, params, work)
        report["mismatches"] += found["mismatches"]
    return report
