"""What falls while a training goes on: the learning rate, and what being undecided is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def fallen(first: float, last: float, share: float, shape: str = "linear") -> float:
    """A value between its first and its last one.

    Parameters
    ----------
    first, last : float
    share : float
        How much of the training is done, 0 to 1.
    shape : str
        ``cosine`` falls along half a wave, slowly at both ends; all others in a line.
    """
    if shape == "cosine":
        share = 0.5 * (1.0 - math.cos(math.pi * share))
    return first + share * (last - first)


def rate(settings: Mapping[str, Any], steps: int) -> float:
    """The learning rate after so many steps; see `models.rl.params.Run`."""
    first: float = settings["rate"]
    # No rate falls from below the last one.
    last: float = min(first, settings["last_rate"])
    if settings["schedule"] == "stairs":
        below: float = first * settings["decay"] ** (steps // settings["decay_every"])
        return max(last, below)
    return fallen(first, last, min(1.0, steps / settings["steps"]), settings["schedule"])


def entropy_weight(settings: Mapping[str, Any], steps: int) -> float:
    """Weight of the entropy after so many steps; see `models.rl.params.Ppo`."""
    first: float = settings["entropy_weight"]
    last: float | None = settings["last_entropy_weight"]
    share = min(1.0, steps / settings["steps"])
    return first if last is None else fallen(first, last, share, settings["schedule"])
