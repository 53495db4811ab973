"""A curriculum for training: episodes begin near the middle of a sampler's ranges and widen.

A sampler draws whatever it draws from a random generator. In an environment's first episodes it is
given one whose ranges are narrower, so that each sampler, with no word of this in it, has a
curriculum. How wide they are depends on an environment's own count of episodes alone, and
so neither on threads nor on when a training is stopped and gone on with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from data.strict import Strict


class Curriculum(Strict):
    """How the ranges widen (ours; the papers train on all of their conditions from the start)."""

    episodes: int = Field(ge=1)
    """Episodes of an environment before its ranges are whole."""
    first: float = Field(0.25, ge=0, le=1)
    """Share of each range in the first episode."""

    def breadth(self, episode: int) -> float:
        """Share of each range in an environment's episode, counted from 0."""
        return min(1.0, self.first + (1.0 - self.first) * episode / self.episodes)


class Varied(Strict):
    """Settings of all environments that change what is learned from; judging leaves them out."""

    curriculum: Curriculum | None = None
    """How the sampler's ranges widen."""
    shortest: int | None = Field(None, ge=1)
    """Fewest steps of an episode, whose length is drawn; with more and shorter episodes as many
    steps see more scenarios (ours)."""

    def options(self) -> dict[str, Any]:
        """As `models.envs.batching.Batching` takes them."""
        return {"curriculum": self.curriculum, "shortest": self.shortest}


class Narrow(np.random.Generator):
    """A generator whose ranges are a share of what is asked for.

    ``uniform`` draws around the middle of its range. ``choice`` among numbers draws from the first
    of them, for samplers name the gentlest first, as no loss before some loss. All else, seeds and
    kinds of links among it, is drawn as always.

    Parameters
    ----------
    bits : numpy BitGenerator
    breadth : float
        The share; 1 draws the very same as a plain generator.
    """

    def __init__(self, bits: np.random.BitGenerator, breadth: float) -> None:
        super().__init__(bits)
        self.breadth = breadth

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Draw evenly from the middle part of a range."""
        drawn = super().uniform(low, high, size)
        if self.breadth == 1.0:
            return drawn
        middle = (np.asarray(low) + np.asarray(high)) / 2
        return middle + (drawn - middle) * self.breadth

    def choice(self, a: Any, *arguments: Any, **options: Any) -> Any:
        """Choose one of several, and of numbers one of the first."""
        if all(isinstance(one, int | float) for one in np.atleast_1d(a).tolist()) and np.ndim(a):
            a = a[: max(1, int(np.ceil(len(a) * self.breadth)))]
        return super().choice(a, *arguments, **options)


def generator(seed: list[int], curriculum: Curriculum | None, episode: int) -> np.random.Generator:
    """What an episode's scenario is drawn from.

    Parameters
    ----------
    seed : list of int
        Seeds of a batch, an environment, and its episode.
    curriculum : Curriculum or None
        None draws from whole ranges at once.
    episode : int
    """
    rng = np.random.default_rng(seed)
    if curriculum is None:
        return rng
    return Narrow(rng.bit_generator, curriculum.breadth(episode))
