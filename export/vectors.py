"""Observations that a wrong translation of a form would answer wrongly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.ir import Form, Ints, Linear, Nodes
from features.spec import Feature

TIMED_ROWS = 1 << 15


@dataclass(frozen=True)
class Vectors:
    """Observations and where they come from.

    Attributes
    ----------
    x : int64 array [n, d]
        Within 32 bits.
    counts : dict
        Observations per origin: stored, random, thresholds, leaves, extremes.
    """

    x: Ints
    counts: dict[str, int]


def make_vectors(form: Form, stored: Ints, random: int, seed: int) -> Vectors:
    """All observations that a target's answers are compared on.

    Parameters
    ----------
    form : Form
    stored : int64 array [m, d]
        The bundle's own.
    random : int
        Observations drawn within the ranges, and again over all of 32 bits.
    seed : int

    Returns
    -------
    Vectors
        The stored ones, random ones, every threshold at -1, 0, +1 at a point that reaches its
        comparison, two points in every leaf, and the extremes of 8, 16 and 32 bits.
    """
    rng = np.random.default_rng(seed)
    low, high = limits(form.features)
    d = len(form.features)
    parts = {
        "stored": stored,
        "random": np.concatenate(
            [
                rng.integers(low, high, (random, d), endpoint=True),
                rng.integers(INT32_MIN, INT32_MAX, (random, d), endpoint=True),
            ]
        ),
        "extremes": extremes(form.features),
    }
    if isinstance(form, Linear):
        parts["thresholds"] = _near_cut(form, rng)
    else:
        around = [around_tree(nodes, form.features, rng) for nodes in form.trees]
        parts["thresholds"] = np.concatenate([a[0] for a in around])
        parts["leaves"] = np.concatenate([a[1] for a in around])
    counts = {name: len(x) for name, x in parts.items()}
    return Vectors(np.concatenate(list(parts.values())).astype(np.int64), counts)


def timing_rows(form: Form, seed: int) -> Ints:
    """Observations to time a form on, int64 [TIMED_ROWS, d].

    Drawn evenly from all leaves and in random order, so that paths are as long and branches as
    hard to predict as the model allows; far more rows than a branch predictor remembers.
    """
    rng = np.random.default_rng(seed)
    low, high = limits(form.features)
    if isinstance(form, Linear):
        return rng.integers(low, high, (TIMED_ROWS, len(form.features)), endpoint=True)
    parts = []
    for nodes in form.trees:
        lowest, highest = regions(nodes, form.features)
        leaves = np.flatnonzero(nodes.arrays[0] < 0)
        chosen = rng.choice(leaves, TIMED_ROWS // len(form.trees) + 1)
        parts.append(rng.integers(lowest[chosen], highest[chosen], endpoint=True))
    return rng.permutation(np.concatenate(parts))[:TIMED_ROWS]


def around_tree(
    nodes: Nodes, features: tuple[Feature, ...], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Observations around every threshold and in every leaf of one tree.

    Returns
    -------
    thresholds : int64 array [2 * 3 * inner nodes, d]
        Two points of each comparison's region, with the compared feature at -1, 0, +1.
    leaves : int64 array [2 * leaves, d]
        Two points of each leaf's region.
    """
    low, high = regions(nodes, features)
    inside = [rng.integers(low, high, endpoint=True) for _ in range(2)]
    feature, value, _ = nodes.arrays
    inner = np.flatnonzero(feature >= 0)
    thresholds = []
    for points in inside:
        for offset in (-1, 0, 1):
            x = points[inner].copy()
            near = np.clip(value[inner] + offset, INT32_MIN, INT32_MAX)
            x[np.arange(len(inner)), feature[inner]] = near
            thresholds.append(x)
    return np.concatenate(thresholds), np.concatenate([p[feature < 0] for p in inside])


def regions(nodes: Nodes, features: tuple[Feature, ...]) -> tuple[Ints, Ints]:
    """Smallest and largest observation that reaches each node, int64 [nodes, d] each.

    Starts from the features' ranges; where a comparison leaves nothing of them, which a tidied
    tree doesn't have, the region is widened to a point.
    """
    lowest, highest = limits(features)
    low, high = np.tile(lowest, (len(nodes), 1)), np.tile(highest, (len(nodes), 1))
    for i, column in enumerate(nodes.feature):
        if column < 0:
            continue
        left, right = i + 1, nodes.right[i]
        low[left], high[left] = low[i], high[i]
        low[right], high[right] = low[i], high[i]
        high[left, column] = min(high[i, column], nodes.value[i])
        low[right, column] = max(low[i, column], nodes.value[i] + 1)
        low[left, column] = min(low[left, column], high[left, column])
        high[right, column] = max(low[right, column], high[right, column])
    return np.clip(low, INT32_MIN, INT32_MAX), np.clip(high, INT32_MIN, INT32_MAX)


def extremes(features: tuple[Feature, ...]) -> Ints:
    """Ends of 8, 16 and 32 bits and of the ranges: in all features at once and in each alone."""
    low, high = limits(features)
    d = len(features)
    ends = [0, 1, -1]
    for bits in (8, 16, 32):
        half = 1 << (bits - 1)
        ends += [-half, -half + 1, half - 1, half - 2]
        if bits < 32:
            ends += [2 * half - 1, 2 * half]
    rows = [np.full(d, end) for end in ends] + [low, high]
    middle = (low + high) // 2
    for column in range(d):
        for end in (*ends, low[column] - 1, low[column], high[column], high[column] + 1):
            row = middle.copy()
            row[column] = end
            rows.append(row)
    return np.array(rows, dtype=np.int64)


def _near_cut(form: Linear, rng: np.random.Generator) -> Ints:
    """Observations on both sides of a linear form's cut, as near as one feature can take them."""
    low, high = limits(form.features)
    x = rng.integers(low, high, (500, len(form.features)), endpoint=True)
    out = []
    for column, weight in enumerate(form.weights):
        if not weight:
            continue
        rest = form.evaluate(x).scores - x[:, column] * weight
        meets = np.clip((form.cut - rest) // weight, INT32_MIN + 1, INT32_MAX - 1)
        for offset in (-1, 0, 1):
            row = x.copy()
            row[:, column] = meets + offset
            out.append(row)
    return np.concatenate(out) if out else x
