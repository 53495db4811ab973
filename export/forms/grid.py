"""Defines the form of a tabulated policy: features divided into cells, an answer for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.ir import Ints, Verdicts, above_threshold, checked, largest
from export.reading import Malformed, integers, listed
from features.spec import Feature

BODY = frozenset({"edges", "values"})
MAX_CELLS = 1 << 20
_BOUNDARY_EACH = 4


@dataclass(frozen=True)
class Grid:
    """Scores by the cell that an observation falls into.

    Attributes
    ----------
    edges : tuple of tuple of int
        Per feature, rising: ``x <= edge`` is left of it. A feature without edges has one cell.
    values : tuple of tuple of int
        Per cell, the last feature's cell counting fastest, its scores.
    """

    kind: ClassVar[str] = "grid"
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    edges: tuple[tuple[int, ...], ...]
    values: tuple[tuple[int, ...], ...]

    @property
    def outputs(self) -> int:
        """Scores per cell."""
        return len(self.values[0])

    @cached_property
    def _array(self) -> Ints:
        return np.array(self.values, dtype=np.int64)

    def cells(self, x: Ints) -> Ints:
        """Index into ``values`` of each observation: int64 array [N, d] -> [N]."""
        return cell_of(x, self.edges)

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        scores = self._array[self.cells(checked(x, self.features))]
        return (
            above_threshold(scores[:, 0], self.decision_threshold)
            if self.outputs == 1
            else largest(scores)
        )


def cell_of(x: Ints, edges: tuple[tuple[int, ...], ...]) -> Ints:
    """Cell of each observation: int64 array [N, d] -> [N]."""
    cell = np.zeros(len(x), dtype=np.int64)
    for column, steps in enumerate(edges):
        if not steps:
            continue
        below = np.searchsorted(np.array(steps, dtype=np.int64), x[:, column], side="left")
        cell = cell * (len(steps) + 1) + below
    return cell


def body(form: Grid) -> dict[str, Any]:
    """Edges and values."""
    return {"edges": [list(e) for e in form.edges], "values": [list(v) for v in form.values]}


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Grid:
    """A grid from a document's parts."""
    edges = tuple(
        integers(e, f"edges[{i}]", INT32_MIN, INT32_MAX)
        for i, e in enumerate(listed(document["edges"], "edges"))
    )
    if len(edges) != len(features):
        raise Malformed("edges: a list per feature was expected")
    if any(a >= b for steps in edges for a, b in pairwise(steps)):
        raise Malformed("edges: rising numbers were expected")
    cells = math.prod(len(steps) + 1 for steps in edges)
    given = listed(document["values"], "values")
    if cells > MAX_CELLS or len(given) != cells:
        raise Malformed(f"values: one entry per cell, {MAX_CELLS} at most, was expected")
    values = tuple(integers(v, f"values[{i}]", INT32_MIN, INT32_MAX) for i, v in enumerate(given))
    outputs = len(values[0])
    wanted = 1 if len(labels) == 2 else len(labels)
    if len(labels) < 2 or outputs != wanted or any(len(v) != outputs for v in values):
        raise Malformed("values: one score each for two labels, else one per label, was expected")
    return Grid(features, labels, decision_threshold, edges, values)


def boundary_vectors(form: Grid, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations at every edge -1, 0, +1, and one in every cell."""
    low, high = limits(form.features)
    rows = []
    for column, steps in enumerate(form.edges):
        for offset in (-1, 0, 1):
            x = rng.integers(low, high, (_BOUNDARY_EACH * len(steps), len(low)), endpoint=True)
            x[:, column] = np.clip(np.repeat(steps, _BOUNDARY_EACH) + offset, INT32_MIN, INT32_MAX)
            rows.append(x)
    return {"thresholds": np.concatenate(rows), "leaves": inside(form.edges, form.features, rng)}


def inside(
    edges: tuple[tuple[int, ...], ...], features: tuple[Feature, ...], rng: np.random.Generator
) -> Ints:
    """A random observation in every cell, int64 array [cells, d]."""
    low, high = limits(features)
    at = np.indices([len(steps) + 1 for steps in edges]).reshape(len(edges), -1)
    columns = []
    for column, steps in enumerate(edges):
        first = min([int(low[column]), *steps])
        start = np.array([first, *(step + 1 for step in steps)])
        end = np.array([*steps, max(high[column], start[-1])])
        columns.append(rng.integers(start[at[column]], end[at[column]], endpoint=True))
    return np.stack(columns, axis=1)


def timed(form: Grid, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from all cells."""
    x = inside(form.edges, form.features, rng)
    return np.asarray(x[rng.integers(0, len(x), rows)])
