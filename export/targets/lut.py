"""Exports tables: a function of one feature, or any policy over a grid of its observations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from data.errors import UserError
from export.bundle.manifest import FORM, Bundle
from export.bundle.reemit import source_of
from export.document import dumps, loads
from export.fixed import to_values
from export.forms.grid import Grid
from export.forms.table import Table
from export.ir import Form, Ints
from export.loss import Decide, disagreements, measured
from export.lower.tabulate import observations, tabulate
from export.onnx.metadata import described
from export.onnx.run import decided, predict
from export.params import Options, VerifyParams
from export.render import render
from export.source import Source
from export.tanh import stated_error
from export.toolchain.compiled import prove_header
from export.toolchain.harness import CannotRun
from export.vectors import Vectors, make_vectors
from models.output import CLASSES

SUMMARY = "fixed-point table: a function (nuwa-tanh), or a policy over a grid (--set cells)"
TEMPLATES = {"lut": "c_lut.j2", "grid": "c_grid.j2"}
"""Features of a policy, at most: of more than that, most would get no edge at all."""
SUFFIX = "-lut"
FRESH_SEED = 1
"""Not the one that tables are filled with."""


def refuses(form: Form) -> str:
    """Why a grid can't stand for a form: its cells hold decisions, not real values."""
    if isinstance(form, Table) or len(form.labels) > 1:
        return ""
    return "it decides nothing, and a grid's cells hold decisions"


def emit(source: Source, options: Options) -> dict[str, str]:
    """A header; for a policy ``<identifier>_lut.h`` and its grid, ``<identifier>_lut.json``."""
    if isinstance(source.form, Table):
        return {f"{source.identifier}.h": _header(source, source.form)}
    if len(source.labels) == 1:
        raise UserError(f"{source.name}: it decides nothing, and a grid's cells hold decisions")
    grid = tabulate(source, _policy(source), options.cells, options.grid)
    # A cell holds decisions, of real scores which is the largest.
    table = dataclasses.replace(source, name=source.name + SUFFIX, form=grid, output=CLASSES)
    name = table.identifier
    return {f"{name}.h": _header(table, grid), f"{name}.json": dumps(grid)}


def again(bundle: Bundle, source: Source, options: Options) -> dict[str, bytes]:
    """A function's header from its form; a policy's from the bundle's own grid, which is data.

    How well the grid stands for the policy is measured when it is proved.

    Raises
    ------
    UserError
        When the grid isn't one, or one of other features or labels.
    """
    if isinstance(source.form, Table):
        return {name: text.encode() for name, text in emit(source, options).items()}
    table = dataclasses.replace(source, name=source.name + SUFFIX, output=CLASSES)
    file = f"{table.identifier}.json"
    grid = loads(bundle.contents.get(file, b""), file)
    if not isinstance(grid, Grid) or (grid.features, grid.labels) != (
        source.features,
        source.labels,
    ):
        raise UserError(f"{file}: not a grid over the model's features")
    header = _header(dataclasses.replace(table, form=grid), grid)
    return {f"{table.identifier}.h": header.encode(), file: dumps(grid).encode()}


def stated(source: Source, options: Options, files: Mapping[str, bytes]) -> dict[str, Any]:
    """State for the manifest the error against tanh, or cells and disagreement with the policy."""
    if isinstance(source.form, Table):
        return {"entries": len(source.form.curve.entries), **stated_error(source.form.curve)}
    (name,) = (name for name in files if name.endswith(".json"))
    grid = cast(Grid, loads(files[name], name))
    cells = {f.name: len(e) + 1 for f, e in zip(grid.features, grid.edges, strict=True)}
    policy = _policy(source)
    loss = measured(source, lambda x: grid.evaluate(x).classes, policy)
    # The table was filled from the stored ones too; these it hasn't seen.
    fresh = observations(source, np.random.default_rng(FRESH_SEED))[len(source.values) :]
    loss["near_stored"] = disagreements(grid.evaluate(fresh).classes, policy(fresh))
    return {"cells": cells, "disagreement": loss}


def prove(
    bundle: Bundle, vectors: Vectors | None, params: VerifyParams, work: Path
) -> dict[str, Any]:
    """Compare with the table's own meaning bit for bit, and measure what it approximates."""
    paths = {path.suffix: path for path in bundle.files("lut")}
    path = paths.get(".json", bundle.directory / FORM)
    form = loads(path.read_bytes(), path.name)
    header = paths[".h"]
    own = make_vectors(form, bundle.integers, params.random, params.seed)
    report = prove_header(header, header.stem, form, own, params, work)
    if isinstance(form, Table):
        return report | stated_error(form.curve)
    answers = _stored_answers(bundle)
    found = disagreements(form.evaluate(bundle.integers).classes, answers)
    listed = bundle.manifest["targets"]["lut"].get("disagreement", {})
    if bundle.form is not None:
        # Integers on both sides: on any machine it is as it was when it was stated.
        source = source_of(bundle)
        now = measured(source, lambda x: form.evaluate(x).classes, _policy(source))["random"]
        if now != listed.get("random"):
            raise CannotRun(
                f"{path.name} disagrees with its model on {now['disagreements']} of "
                f"{now['vectors']} random observations, which isn't what the manifest says"
            )
    return report | {"disagreement": {**listed, "stored_in_bundle": found}}


def _header(source: Source, form: Form) -> str:
    return render("c.h.j2", source=source, form=form, scoring=TEMPLATES[form.kind])


def _policy(source: Source) -> Decide:
    """The policy's classes: of its integer form if it has one, else of the float model."""
    form = source.form
    if form is not None:
        return lambda x: form.evaluate(x).classes
    # A file that says of itself that its features are others is refused.
    described(source.onnx, source.features, source.feature_settings, source.name)

    def of_floats(x: Ints) -> Ints:
        answers = predict(source.onnx, to_values(x, source.features), source.name)
        return decided(answers, source.threshold)

    return of_floats


def _stored_answers(bundle: Bundle) -> Ints:
    if bundle.form is not None:
        return bundle.form.evaluate(bundle.integers).classes
    return decided(bundle.probability, bundle.threshold)
