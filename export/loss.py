"""What an approximation of a model costs: how often the two decide differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from export.fixed import limits, to_integers
from export.ir import Ints
from export.source import Source

RANDOM = 4096
Decide = Callable[[Ints], Ints]


def disagreements(ours: Ints, theirs: Ints) -> dict[str, Any]:
    """Count and share of rows that two classifications differ on, [n] each."""
    differing = int((ours != theirs).sum())
    share = differing / len(ours) if len(ours) else 0.0
    return {"vectors": len(ours), "disagreements": differing, "share": share}


def measured(source: Source, ours: Decide, theirs: Decide, seed: int = 1) -> dict[str, Any]:
    """Disagreement of two policies on the stored observations and on random ones in range.

    Parameters
    ----------
    source : Source
        Gives features and stored observations.
    ours, theirs : callable
        Integer observations [n, d] -> classes [n].
    seed : int
        Of the random ones.

    Returns
    -------
    dict
        ``stored`` and ``random``, each as :func:`disagreements` says.
    """
    stored = to_integers(source.values, source.features)
    low, high = limits(source.features)
    x = np.random.default_rng(seed).integers(low, high, (RANDOM, len(low)), endpoint=True)
    return {
        "stored": disagreements(ours(stored), theirs(stored)),
        "random": disagreements(ours(x), theirs(x)),
    }
