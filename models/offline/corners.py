"""The plainest words for where logs hold too little."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.offline.regions import AXES


def empty_corner(counts: NDArray[np.int64], bins: Sequence[int], least: int) -> str | None:
    """The plainest words for why a region has too little: of one axis, of two, or of all.

    A range grows to the end of its axis as long as nothing beyond has enough either, so that
    "above 200 segments" is said, and not "with 200 to 1000 segments".

    Parameters
    ----------
    counts : int64 array
        Decisions, with an axis for each of `AXES`.
    bins : sequence of int
        The region's place on each axis.
    least : int
        Decisions that are enough.

    Returns
    -------
    str or None
        None if the region has enough.
    """
    if counts[tuple(bins)] >= least:
        return None
    every = range(len(AXES))
    chosen: list[tuple[int, ...]] = [(i,) for i in every]
    chosen += [(i, j) for i, j in product(every, every) if i < j]
    for axes in (*chosen, tuple(every)):
        others = tuple(i for i in every if i not in axes)
        table: Any = counts.sum(axis=others)
        limits = _grown(table, [bins[i] for i in axes], least)
        if limits is not None:
            return " ".join(
                AXES[i].words(*AXES[i].range(first, last))
                for i, (first, last) in zip(axes, limits, strict=True)
            )
    return None


def _grown(table: Any, bins: list[int], least: int) -> list[tuple[int, int]] | None:
    """First and last bin of a block around one that has less than ``least``; None if it has not."""

    def total(limits: list[tuple[int, int]]) -> int:
        return int(table[tuple(slice(first, last + 1) for first, last in limits)].sum())

    limits = [(at, at) for at in bins]
    if total(limits) >= least:
        return None
    for i, size in enumerate(table.shape):
        first, last = limits[i]
        for wider in ((first, size - 1), (0, last)):
            grown = [*limits[:i], wider, *limits[i + 1 :]]
            # A whole axis would say nothing of it.
            if wider != (0, size - 1) and total(grown) < least:
                limits = grown
                break
    return limits
