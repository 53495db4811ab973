"""What an agent's line says: what steps it, what learns, with which settings."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from models.rl.algorithms.base import AgentAlgorithm
    from models.rl.params import Run

Tried = tuple[float, float] | list[Any]
DQN: dict[str, Tried] = {
    "rate": (1e-4, 2e-3),
    "gamma": [0.9, 0.95, 0.969, 0.99],
    "target_every": [1_000, 4_000, 10_000],
    "update_every": [4, 8, 16],
    "alpha": [0.0, 0.6],
}
PPO: dict[str, Tried] = {
    "rate": (1e-4, 3e-3),
    "gamma": [0.9, 0.95, 0.99],
    "lambda": [0.8, 0.9, 0.95],
    "entropy_weight": (1e-3, 3e-2),
    "epochs": [3, 6, 10],
}
VDN: dict[str, Tried] = {
    "rate": (3e-4, 1e-2),
    "gamma": [0.8, 0.9, 0.95],
    "tau": (5e-3, 1e-1),
    "batch": [64, 128, 256],
    "update_every": [4, 8, 16],
}
VARIED = ("curriculum", "shortest")
"""Of all agents: `models.envs.curriculum.Varied`."""
TWIN = (*VARIED, "twin_k")
"""Of Nuwa's agents: their rewards may be less a twin's."""


@dataclass(frozen=True)
class Agent:
    """An agent's line.

    Attributes
    ----------
    maker : str
        Makes its environments; see `models.rl.runner.make`.
    algorithm : str
        ``module:class``.
    params : str
        ``module:class`` of its training's settings.
    summary : str
        What it is, in a few words.
    search : mapping
        Setting -> what a search tries: lowest and highest (even over their logarithm) as a tuple,
        or a list to choose from.
    preset : mapping
        Settings that aren't as their type has them; those that a user gives come before.
    training_only : tuple of str
        Settings of its environments that change what is learned from, not what is judged, which
        leaves them out.
    """

    maker: str
    algorithm: str
    params: str
    summary: str
    search: Mapping[str, Tried]
    preset: Mapping[str, Any] = field(default_factory=dict)
    training_only: tuple[str, ...] = VARIED

    def load(self) -> type[AgentAlgorithm]:
        """Its algorithm, which imports Ray and torch."""
        return cast("type[AgentAlgorithm]", _imported(self.algorithm))

    def settings(self) -> type[Run]:
        """Type of its training's settings."""
        return cast("type[Run]", _imported(self.params))


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
