"""Holds the kinds of intermediate forms.

Each kind is a module with

- a frozen dataclass that meets :class:`export.ir.Form`;
- ``BODY``: its keys in a JSON document beside the head that all share;
- ``body(form) -> dict``: their values;
- ``parse(document, features, labels, decision_threshold) -> form``: the way back, suspicious of
  everything (:class:`export.reading.Malformed`);
- ``boundary_vectors(form, rng) -> {origin: int64 array [N, d]}``: observations that a wrong
  translation would answer wrongly (thresholds, leaves, both sides of the decision threshold ...);
- ``timed(form, rng, rows) -> int64 array [rows, d]``: observations to time it on.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np

from data.errors import unknown_name
from export.ir import Form, Ints
from features.spec import Feature

FORMS: dict[str, str] = {
    "tree": "export.forms.tree",
    "forest": "export.forms.forest",
    "trees": "export.forms.trees",
    "linear": "export.forms.linear",
    "lut": "export.forms.table",
    "grid": "export.forms.grid",
    "mlp": "export.forms.mlp",
    "gru": "export.forms.recurrent",
    "lstm": "export.forms.recurrent",
    "rbf": "export.forms.rbf",
    "program": "export.forms.program",
}
"""Kind -> module."""


class FormModule(Protocol):
    """Functions and constants of a form's module."""

    BODY: frozenset[str]

    def body(self, form: Any) -> Mapping[str, Any]:
        """The form's own part of a document."""
        ...

    def parse(
        self,
        document: Mapping[str, Any],
        features: tuple[Feature, ...],
        labels: tuple[str, ...],
        decision_threshold: int,
    ) -> Form:
        """A form from a document's parts."""
        ...

    def boundary_vectors(self, form: Any, rng: np.random.Generator) -> dict[str, Ints]:
        """Observations that a wrong translation would answer wrongly."""
        ...

    def timed(self, form: Any, rng: np.random.Generator, rows: int) -> Ints:
        """Observations to time the form on."""
        ...


def form_module(kind: str) -> FormModule:
    """Module of a kind of form.

    Raises
    ------
    UserError
        With the nearest name, if there is no such kind.
    """
    if kind not in FORMS:
        raise unknown_name("kind", kind, FORMS)
    return cast(FormModule, importlib.import_module(FORMS[kind]))
