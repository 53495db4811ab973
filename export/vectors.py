"""Makes observations that a wrong translation of a form would answer wrongly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from export.fixed import INT32_MAX, INT32_MIN, limits
from export.forms import form_module
from export.ir import Form, Ints
from features.spec import Feature

TIMED_ROWS = 1 << 15
WIDE = 200
"""With more features, as of raw series, the ends of each alone would be tens of thousands."""


@dataclass(frozen=True)
class Vectors:
    """Observations and where they come from.

    Attributes
    ----------
    x : int64 array [N, d]
        Within 32 bits; read-only.
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
    stored : int64 array [M, d]
        The bundle's own.
    random : int
        Observations drawn within the ranges, and again over all of 32 bits.
    seed : int

    Returns
    -------
    Vectors
        The stored ones, random ones, every threshold at -1, 0, +1 at a point that reaches its
        comparison, two points in every leaf (or what else the form's kind finds critical), and
        the extremes of every integer type.
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
    parts |= form_module(form.kind).boundary_vectors(form, rng)
    counts = {name: len(x) for name, x in parts.items()}
    x = np.concatenate(list(parts.values())).astype(np.int64)
    x.flags.writeable = False  # every target gets the same
    return Vectors(x, counts)


def timing_rows(form: Form, seed: int) -> Ints:
    """Observations to time a form, more than a branch predictor keeps: int64 array [rows, d]."""
    return form_module(form.kind).timed(form, np.random.default_rng(seed), TIMED_ROWS)


def extremes(features: tuple[Feature, ...]) -> Ints:
    """Ends of every integer type and of the ranges: in all features at once and in each alone.

    Both sides of the ends of signed and unsigned 8 and 16 bits, the ends of 32 bits (of unsigned
    ones the largest is the same bits as -1), and those where float32 stops to know every integer.
    Observations have 32 bits, so 64-bit types, which hold sums of scores only, have no ends here.
    Of more than `WIDE` features each alone has the ends of its range and of 32 bits only.
    """
    low, high = limits(features)
    d = len(features)
    ends = [0, 1, -1, INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX]
    for bits in (8, 16):
        half = 1 << (bits - 1)
        ends += [-half - 1, -half, -half + 1, half - 2, half - 1, half, 2 * half - 1, 2 * half]
    ends += [-(1 << 24) - 1, -(1 << 24), 1 << 24, (1 << 24) + 1]
    rows = [np.full(d, end) for end in ends] + [low, high]
    middle = (low + high) // 2
    for column in range(d):
        alone = ends if d <= WIDE else [INT32_MIN, INT32_MAX]
        for end in (*alone, low[column] - 1, low[column], high[column], high[column] + 1):
            row = middle.copy()
            row[column] = end
            rows.append(row)
    return np.array(rows, dtype=np.int64)
