"""Makes forms smaller, and measures what that changes.

A pass is a module with

- ``KINDS``: kinds of forms it is for;
- ``smaller(form, setting, x) -> form``: ``setting`` is an integer above 0, ``x`` int64 array [N, d]
  observations that show where answers matter.

Passes run in the order of :data:`PASSES`, each if its option is set
(``cczoo export --set depth=6``).
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Protocol, cast

import numpy as np

from data.errors import UserError
from export.fixed import to_integers
from export.ir import Form, Ints
from export.params import Options
from export.source import Source

PASSES: dict[str, str] = {
    "depth": "export.passes.depth",
    "nodes": "export.passes.nodes",
    "vectors": "export.passes.vectors",
    "bits": "export.passes.bits",
}
"""Option -> module."""

NEIGHBOURS = 8
POINTS = 15


class Pass(Protocol):
    """Functions and constants of a pass's module."""

    KINDS: frozenset[str]

    def smaller(self, form: Any, setting: int, x: Ints) -> Form:
        """The form within the bound."""
        ...


def transformed(source: Source, options: Options) -> Source:
    """Run the passes that are asked for.

    Returns
    -------
    Source
        With the last pass's form and in ``passes`` per pass ``pass``, ``setting``, ``rows``
        (stored vectors) and ``disagreements`` (on how many of them the class changed).

    Raises
    ------
    UserError
        When a pass isn't for this kind of form, its setting isn't above 0 or no vectors are
        stored.
    """
    asked = {name: getattr(options, name) for name in PASSES}
    asked = {name: setting for name, setting in asked.items() if setting is not None}
    if not asked:
        return source
    form = source.form
    if form is None:
        raise UserError(f"--set {next(iter(asked))}: {source.name!r} has no integer form")
    stored = to_integers(source.values, source.features)
    if not len(stored):
        raise UserError(f"--set {next(iter(asked))}: {source.name!r} stores no vectors to measure")
    around = surroundings(stored, np.random.default_rng(0))
    reports = []
    for name, setting in asked.items():
        module = cast(Pass, importlib.import_module(PASSES[name]))
        if form.kind not in module.KINDS:
            kinds = ", ".join(sorted(module.KINDS))
            raise UserError(f"--set {name}: for {kinds}, and {source.name!r} is a {form.kind}")
        before, form = form, module.smaller(form, setting, around)
        changed = before.evaluate(stored).classes != form.evaluate(stored).classes
        report = {"pass": name, "setting": setting}
        reports.append(report | {"rows": len(stored), "disagreements": int(changed.sum())})
    return dataclasses.replace(
        source, form=form, passes=tuple(reports), source_model_hash=source.model_hash
    )


def surroundings(stored: Ints, rng: np.random.Generator) -> Ints:
    """Stored vectors (int64 array [N, d]) and points on the way to their neighbours ([M, d]).

    The form itself answers on them, so that a pass needs no labels.
    """
    spread = stored.std(axis=0)
    scaled = stored / np.where(spread > 0, spread, 1.0)
    squares = (scaled**2).sum(axis=1)
    distance = squares[:, None] + squares - 2 * scaled @ scaled.T
    nearest = np.argsort(distance, axis=1, kind="stable")[:, 1 : NEIGHBOURS + 1]
    if not nearest.shape[1]:
        return stored
    each = np.repeat(np.arange(len(stored)), POINTS)
    other = nearest[each, rng.integers(nearest.shape[1], size=len(each))]
    way = np.floor((stored[other] - stored[each]) * rng.random((len(each), 1)))
    return np.concatenate([stored, stored[each] + way.astype(np.int64)])
