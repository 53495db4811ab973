"""Tabulates any policy as a Grid: its answers over a grid of its observations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from data.errors import UserError
from export.fixed import limits, to_integers
from export.forms.grid import MAX_CELLS, Grid, cell_of, inside
from export.ir import Ints
from export.source import Source

Decide = Callable[[Ints], Ints]
Edges = tuple[tuple[int, ...], ...]
SAMPLE = 8192
NEIGHBOURS = 8
LEAVES = 48
PER_FEATURE = 15
"""Leaves of the tree whose splits are candidate edges; else candidate edges of each feature."""
PATIENCE = 4
"""Edges that may be added in vain before the search ends."""
ALL = 255
"""A table's score: the share of the policy's answers in a cell, in units of 1/255."""


def tabulate(source: Source, decide: Decide, cells: int, spacing: str, seed: int = 0) -> Grid:
    """Tabulate a policy.

    One edge after another is added, always the one with which the table agrees most with the
    policy on observations that it wasn't filled from, until ``cells`` or :data:`PATIENCE` is
    used up. A feature that helps nowhere keeps one cell.

    Parameters
    ----------
    source : Source
        Its features, labels and stored observations.
    decide : callable
        Integer observations [N, d] -> the policy's classes [N].
    cells : int
        The most cells that the grid may have.
    spacing : str
        Where edges may stand: where a small tree ``fit`` to the policy splits, at a ``quantile``
        of the observations, or at ``even`` steps of the range.
    seed : int
        Of the observations drawn.

    Returns
    -------
    Grid
        A cell's score is the share of the policy's answers there: of ``labels[1]`` with two
        labels, else of each.

    Raises
    ------
    UserError
        For an impossible number of cells.
    """
    if not 2 <= cells <= MAX_CELLS:
        raise UserError(f"--set cells={cells}: 2 to {MAX_CELLS} is possible")
    rng = np.random.default_rng(seed)
    x = observations(source, rng)
    classes = decide(x)
    edges = _divided(x, classes, _candidates(source, x, classes, spacing), cells)
    # Cells without an observation get one, so that every answer is the policy's own somewhere.
    extra = inside(edges, source.features, rng)
    return _filled(source, edges, np.concatenate([x, extra]), np.append(classes, decide(extra)))


def observations(source: Source, rng: np.random.Generator) -> Ints:
    """Stored observations and points between neighbours of them, int64 array [N, d].

    Real observations fill a small part of their range, and a table has to spend its cells there.
    Without stored ones all of the range is drawn from.
    """
    low, high = limits(source.features)
    stored = to_integers(source.values, source.features)
    if len(stored) <= NEIGHBOURS:
        return rng.integers(low, high, (SAMPLE, len(low)), endpoint=True)
    ranks = np.argsort(np.argsort(stored, axis=0, kind="stable"), axis=0) / len(stored)
    apart = np.abs(ranks[:, None] - ranks[None]).sum(axis=2)
    neighbours = np.argsort(apart, axis=1, kind="stable")[:, 1 : NEIGHBOURS + 1]
    first = rng.integers(0, len(stored), SAMPLE)
    a, b = stored[first], stored[neighbours[first, rng.integers(0, NEIGHBOURS, SAMPLE)]]
    between = a + np.floor((b - a) * rng.random((SAMPLE, 1))).astype(np.int64)
    return np.concatenate([stored, between])


def _candidates(source: Source, x: Ints, classes: Ints, spacing: str) -> list[tuple[int, int]]:
    """Feature and place of every edge that may be drawn."""
    low, high = limits(source.features)
    found: set[tuple[int, int]] = set()
    if spacing == "fit":
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=8, random_state=0)
        splits = tree.fit(x, classes).tree_
        for feature, threshold in zip(splits.feature, splits.threshold, strict=True):
            if feature >= 0:
                found.add((int(feature), math.floor(threshold)))
    for column in range(len(low)) if spacing != "fit" else ():
        inner = np.arange(1, PER_FEATURE + 1) / (PER_FEATURE + 1)
        even = low[column] + inner * (high[column] - low[column])
        edges = even if spacing == "even" else np.quantile(x[:, column], inner)
        found |= {(column, math.floor(edge)) for edge in edges}
    return sorted((column, edge) for column, edge in found if low[column] <= edge < high[column])


def _divided(x: Ints, classes: Ints, candidates: list[tuple[int, int]], cells: int) -> Edges:
    """Edges of every feature, found one by one."""
    edges: Edges = ((),) * x.shape[1]
    best, kept, in_vain = _agreement(x, classes, edges), edges, 0
    while in_vain < PATIENCE:
        tried = []
        for column, edge in candidates:
            more = _with(edges, column, edge)
            if len(more[column]) > len(edges[column]) and _cells(more) <= cells:
                # Of equally good ones the one that costs fewest cells.
                tried.append((_agreement(x, classes, more), -_cells(more), more))
        if not tried:
            break
        found, _, edges = max(tried)
        in_vain += 1
        if found > best:
            best, kept, in_vain = found, edges, 0
    return kept


def _with(edges: Edges, column: int, edge: int) -> Edges:
    steps = tuple(sorted({*edges[column], edge}))
    return (*edges[:column], steps, *edges[column + 1 :])


def _cells(edges: Edges) -> int:
    return math.prod(len(steps) + 1 for steps in edges)


def _votes(cell: Ints, classes: Ints, cells: int, labels: int) -> Ints:
    """How often each class was answered in each cell, int64 array [cells, labels]."""
    counts = np.bincount(cell * labels + classes, minlength=cells * labels)
    return counts.reshape(cells, labels)


def _agreement(x: Ints, classes: Ints, edges: Edges) -> float:
    """Share of every second row answered right by a table filled from the others."""
    cell, labels = cell_of(x, edges), int(classes.max()) + 1
    # A cell without votes answers as most of the rest do.
    most = np.bincount(classes[::2], minlength=labels) / (len(classes) + 1)
    votes = _votes(cell[::2], classes[::2], _cells(edges), labels) + most
    return float((votes.argmax(axis=1)[cell[1::2]] == classes[1::2]).mean())


def _filled(source: Source, edges: Edges, x: Ints, classes: Ints) -> Grid:
    votes = _votes(cell_of(x, edges), classes, _cells(edges), len(source.labels))
    share = votes / votes.sum(axis=1, keepdims=True)
    values = np.floor(share * ALL + 0.5).astype(np.int64)
    half = ALL // 2
    if len(source.labels) == 2:
        # Rounding must not move a majority onto the decision threshold, nor a tie above it.
        ones = values[:, 1]
        values = np.where(share[:, 1] > 0.5, np.maximum(ones, half + 1), np.minimum(ones, half))
        values = values[:, None]
    rows = tuple(tuple(row) for row in values.tolist())
    return Grid(source.features, source.labels, half, edges, rows)
