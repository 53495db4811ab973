"""Which of three and more subflows to couple: a partition from verdicts on their pairs.

smartsbd.txt section 7 asks for the partition P of a connection's subflows in which (1) two
subflows of different subsets don't share a bottleneck and (2) there are as many subsets as (1)
allows. By (1) a pair that is held to share stays together, so every subset is a union of connected
components of the graph of such pairs; by (2) it is one component. Subflows of a subset of two and
more are coupled, one by itself is uncoupled.

Verdicts needn't be transitive: with A-B and B-C shared and A-C not, the rule couples all three,
which is the side that is fair to others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def components(shared: Bools) -> Ints:
    """Partition of n subflows for each of many windows (smartsbd.txt section 7).

    Parameters
    ----------
    shared : ndarray of bool, shape (..., n, n)
        Whether subflows i and j are held to share a bottleneck; either triangle will do, and the
        diagonal doesn't count.

    Returns
    -------
    ndarray of int64, shape (..., n)
        For each subflow the smallest subflow of its subset.

    Raises
    ------
    ValueError
        When the last two dimensions differ.
    """
    n = shared.shape[-1]
    if shared.ndim < 2 or shared.shape[-2] != n:
        raise ValueError(f"an array (..., n, n) was expected, not {shared.shape}")
    linked = shared | shared.swapaxes(-1, -2) | np.eye(n, dtype=np.bool_)
    group = np.broadcast_to(np.arange(n), shared.shape[:-1]).astype(np.int64)
    # The smallest number wanders one link a turn, and a path has n - 1 links at most.
    for _ in range(n - 1):
        group = np.where(linked, group[..., None, :], n).min(axis=-1)
    return group


def together(group: Ints) -> Bools:
    """Whether two subflows are of one subset, shape (..., n, n), the diagonal included."""
    return np.asarray(group[..., :, None] == group[..., None, :])


def coupled(group: Ints) -> Bools:
    """Whether each subflow has another one in its subset, shape (..., n)."""
    return np.asarray(together(group).sum(axis=-1) > 1)


def contradicted(shared: Bools, judged: Bools) -> Bools:
    """Whether a pair is put together although its own verdict is against it, shape (...).

    Parameters
    ----------
    shared, judged : ndarray of bool, shape (..., n, n)
        Verdicts as for :func:`components`, and for which pairs there is one (upper triangle).
    """
    against = together(components(shared)) & judged & ~(shared | shared.swapaxes(-1, -2))
    return np.asarray(np.triu(against, 1).any(axis=(-1, -2)))


def subsets(group: Ints, names: Sequence[int]) -> list[list[int]]:
    """Subsets of one partition, in the order of their smallest members.

    Parameters
    ----------
    group : ndarray of int, shape (n,)
        As :func:`components` gives it.
    names : sequence of int, length n
        Numbers of the subflows.
    """
    return [
        [name for name, of in zip(names, group, strict=True) if of == first]
        for first in np.unique(group)
    ]
