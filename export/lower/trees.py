"""Lowers scikit-learn trees of many classes or of real values to Trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, Q16
from export.forms.nodes import MAX_NODES, Nodes
from export.forms.trees import Trees
from export.ir import Ints
from export.lower.prepare import Floats, NotLowerable, Prepared
from export.lower.sklearn_tree import sklearn_nodes

MOST_PLACES = 30
"""Fractional bits of a score; leaves have 32 bits."""
Q16_PLACES = Q16.bit_length() - 1


def several_scores(prepared: Prepared, trees: Sequence[Any]) -> Trees:
    """The mean of scikit-learn trees: probabilities of the classes, or a regressor's outputs.

    Parameters
    ----------
    prepared : Prepared
    trees : sequence of sklearn.tree._tree.Tree

    Raises
    ------
    NotLowerable
        When the trees are too large or answer with something else than one score per label.
    """
    return mean_of_rows(
        prepared, trees, [leaf_scores(prepared, tree) / len(trees) for tree in trees]
    )


def mean_of_rows(prepared: Prepared, trees: Sequence[Any], values: Sequence[Floats]) -> Trees:
    """Trees whose leaves hold a score for each label, which are added.

    Parameters
    ----------
    prepared : Prepared
    trees : sequence
        As :func:`export.lower.tree.sklearn_nodes` takes them.
    values : sequence of float64 arrays [nodes, labels]

    Raises
    ------
    NotLowerable
        When the trees are too large, or scores aren't finite or don't fit 32 bits.
    """
    refuse_not_finite(values)
    places = score_places(max(float(np.abs(v).max()) for v in values))
    if len(trees) == 1 and not prepared.regressor:
        places = min(Q16_PLACES, places)
    whole = [rounded(v, places) for v in values]
    if len(trees) == 1 and not prepared.regressor:
        whole = [_same_winner(values[0], whole[0])]
    if len(prepared.labels) == 1:
        nodes = [sklearn_nodes(prepared, t, v[:, 0]) for t, v in zip(trees, whole, strict=True)]
        return assembled(prepared, nodes, places, into=[0] * len(nodes))
    rows, at = np.unique(np.concatenate(whole), axis=0, return_inverse=True)
    indices = np.split(np.ravel(at), np.cumsum([len(v) for v in whole])[:-1])
    nodes = [sklearn_nodes(prepared, t, i) for t, i in zip(trees, indices, strict=True)]
    return assembled(prepared, nodes, places, rows=rows)


def added_scores(
    prepared: Prepared,
    trees: Sequence[Any],
    values: Sequence[Floats],
    outputs: Sequence[int],
    priors: Sequence[float],
    *,
    single: bool = True,
) -> Trees:
    """Trees that add to one score each, as boosting grows them: margins, or a real value.

    Parameters
    ----------
    prepared : Prepared
    trees : sequence
        As :func:`export.lower.tree.sklearn_nodes` takes them.
    values : sequence of float64 arrays [nodes]
        What each tree's leaves add.
    outputs : sequence of int
        Class or output that each tree adds to.
    priors : sequence of float
        What each class's or output's score starts from.
    single : bool
        The trees see their inputs rounded to float32.

    Raises
    ------
    NotLowerable
        When the trees are too large, or scores aren't finite or don't fit 32 bits.
    """
    refuse_not_finite(values)
    if not np.isfinite(priors).all():
        raise NotLowerable(f"a score starts from {priors[int(np.isfinite(priors).argmin())]}")
    if len(priors) != len(prepared.places_of):
        raise NotLowerable(f"{len(priors)} outputs for {len(prepared.labels)} labels")
    reach = np.abs(np.array(priors, dtype=np.float64))
    for output, tree, value in zip(outputs, trees, values, strict=True):
        reach[output] += np.abs(value[np.asarray(tree.children_left) < 0]).max()
    places = score_places(float(reach.max()))
    nodes = [
        sklearn_nodes(prepared, tree, rounded(value, places), single=single)
        for tree, value in zip(trees, values, strict=True)
    ]
    into = [prepared.places_of[output] for output in outputs]
    starts = dict(zip(prepared.places_of, rounded(np.array(priors), places).tolist(), strict=True))
    for label in range(len(prepared.labels)):
        # No score reaches as low as that of a class that training lacked.
        start = starts.get(label, INT32_MIN)
        if start:
            nodes.append(Nodes((-1,), (start,), (0,)))
            into.append(label)
    return assembled(prepared, nodes, places, into=into)


def assembled(
    prepared: Prepared,
    nodes: Sequence[Nodes],
    places: int,
    *,
    rows: Ints | None = None,
    into: Sequence[int] = (),
) -> Trees:
    """The form, with those rows alone that a leaf refers to."""
    total = sum(map(len, nodes))
    if total > MAX_NODES:
        raise NotLowerable(f"its trees have {total} nodes together, {MAX_NODES} is the most")
    kept: tuple[tuple[int, ...], ...] = ()
    if rows is not None:
        used = np.unique(np.concatenate([n.arrays[1][n.arrays[0] < 0] for n in nodes]))
        place = {int(row): i for i, row in enumerate(used)}
        nodes = [_renumbered(n, place) for n in nodes]
        kept = tuple(tuple(row) for row in rows[used].tolist())
    return Trees(prepared.features, prepared.labels, tuple(nodes), tuple(into), kept, places)


def leaf_scores(prepared: Prepared, tree: Any) -> Floats:
    """Every node's score per label, float64 array [nodes, labels].

    The score of a class that training lacked is 0.
    """
    value = np.asarray(tree.value, dtype=np.float64)
    if prepared.regressor:
        scores = value[:, :, 0]
    else:
        scores = value[:, 0, :] / value[:, 0, :].sum(axis=1, keepdims=True)
    if scores.shape[1] != len(prepared.places_of):
        raise NotLowerable(f"{scores.shape[1]} outputs for {len(prepared.labels)} labels")
    placed = np.zeros((len(scores), len(prepared.labels)))
    placed[:, list(prepared.places_of)] = scores
    return placed


def score_places(largest: float) -> int:
    """Fractional bits with which scores up to this fit 32 bits."""
    room = INT32_MAX / max(largest, 2.0**-MOST_PLACES) / 2
    if room < 1:
        raise NotLowerable(f"a score of {largest:.3g} doesn't fit 32 bits: give it a larger unit")
    return min(MOST_PLACES, math.floor(math.log2(room)))


def refuse_not_finite(values: Sequence[Floats]) -> None:
    """NotLowerable if a value isn't finite; per tree a float64 array [nodes] or [nodes, labels]."""
    for number, value in enumerate(values):
        odd = np.argwhere(~np.isfinite(value))
        if len(odd):
            found, node = value[tuple(odd[0])], odd[0][0]
            raise NotLowerable(
                f"tree {number} adds {found} in node {node}: no integer stands for it"
            )


def rounded(values: Floats, places: int) -> Ints:
    """Integers with ``places`` fractional bits, rounded half up."""
    return np.asarray(np.floor(values * 2.0**places + 0.5).astype(np.int64))


def _same_winner(values: Floats, whole: Ints) -> Ints:
    """If rounding made a tie out of a lead, the leader stays ahead by one unit."""
    winner = values.argmax(axis=1)
    lost = np.flatnonzero(whole.argmax(axis=1) != winner)
    whole[lost, winner[lost]] += 1
    return whole


def _renumbered(nodes: Nodes, place: dict[int, int]) -> Nodes:
    value = tuple(
        v if feature >= 0 else place[v]
        for feature, v in zip(nodes.feature, nodes.value, strict=True)
    )
    return Nodes(nodes.feature, value, nodes.right)
