"""Settings of a distillation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from data.strict import Strict

STEERED = "steered"
"""What a tree of `models.distill.by_return` says it sees: only what its few nodes ask for."""


class Distill(Strict):
    """What ``cczoo distill`` takes."""

    depth: int = Field(10, ge=1, le=20)
    """Comparisons on the longest path at most."""
    leaves: int = Field(255, ge=2, le=10_000)
    """Leaves at most."""
    rounds: int = Field(3, ge=1, le=50)
    """How often rows are gathered: by the teacher first, then by the student so far."""
    lanes: int = Field(16, ge=1, le=1024)
    """Episodes of each round, and of each validation."""
    steps: int | None = Field(None, ge=2)
    """Decisions of an episode, by default as many as its environment has."""
    weights: Literal["gap", "none"] = "gap"
    """Of rows: by how much the best action's score is above the worst one's (VIPER), or none."""
    goal: Literal["action", "scores"] = "action"
    """What splits are chosen by: the teacher's action, by its weight; or the squared error of what
    the actions are worth against their mean, so that near ties cost little."""
    pool: bool = True
    """Whether a round learns from the rows of those before too (DAgger)."""
    views: tuple[str, ...] = ("present", "all")
    """What trees may see: everything, or all but changes over time; the better one is kept."""
    steered: int = Field(0, ge=0, le=100)
    """Generations of a search by return (`models.distill.by_return`) for a tree that steers windows
    or turns k, beside those that imitate; each plays 14 times as many episodes as there are
    lanes."""
    least: int = Field(4, ge=1)
    """Rows that a leaf is made of at least."""
    tolerance: float = Field(0.002, ge=0, le=1)
    """Share of the return in validation that a smaller tree may lose."""
    seeds: int = Field(10, ge=2, le=1000)
    """Seeds of the test, each with episodes of its own."""
    episodes: int = Field(4, ge=1, le=1024)
    """Episodes of each of them."""
    seed: int = Field(7, ge=0, le=2**31 - 1)
