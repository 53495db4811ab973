"""The agents that can be trained: a new one is one line."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from data.errors import unknown_name

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
    """

    maker: str
    algorithm: str
    params: str
    summary: str
    search: Mapping[str, Tried]

    def load(self) -> type[AgentAlgorithm]:
        """Its algorithm, which imports Ray and torch."""
        return cast("type[AgentAlgorithm]", _imported(self.algorithm))

    def settings(self) -> type[Run]:
        """Type of its training's settings."""
        return cast("type[Run]", _imported(self.params))


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


AGENTS: dict[str, Agent] = {
    "tcco": Agent(
        "models.envs.tcco:batch",
        "models.rl.algorithms.replay:TransformerDqnAlgorithm",
        "models.rl.params:TransformerDqn",
        "windows of all subflows of an MPTCP connection (Transformer, DQN)",
        DQN,
    ),
    "nuwa": Agent(
        "models.envs.nuwa_twin:batch",
        "models.rl.algorithms.ppo:PpoAlgorithm",
        "models.rl.params:RecurrentPpo",
        "a receiver that steers its sender (LSTM, PPO)",
        PPO,
    ),
    "macc": Agent(
        "models.envs.macc:batch",
        "models.rl.algorithms.replay:VdnAlgorithm",
        "models.rl.params:Macc",
        "senders and routers that cooperate (VDN)",
        VDN,
    ),
}
"""Name, as in ``cczoo train NAME``, -> agent."""

KNOWN: dict[str, Agent] = {
    "recall": Agent(
        "models.rl.known:recall",
        "models.rl.algorithms.ppo:PpoAlgorithm",
        "models.rl.params:RecurrentPpo",
        "a known optimum for a network with memory: 1",
        PPO,
    ),
    "recall-transformer": Agent(
        "models.rl.known:recall",
        "models.rl.algorithms.replay:TransformerDqnAlgorithm",
        "models.rl.params:TransformerDqn",
        "as recall, for the Transformer",
        DQN,
    ),
    "matrix": Agent(
        "models.rl.known:matrix",
        "models.rl.algorithms.replay:VdnAlgorithm",
        "models.rl.params:Vdn",
        "a known optimum for a team: 1 a step",
        VDN,
    ),
}
"""Those whose best return is known, for tests and benchmarks."""


def agent(name: str) -> Agent:
    """An agent by its name.

    Raises
    ------
    UserError
        With the nearest name, where there is none.
    """
    known = AGENTS | KNOWN
    if name not in known:
        raise unknown_name("agent", name, known)
    return known[name]


def settings(name: str, changes: dict[str, Any]) -> Run:
    """An agent's settings, with changes.

    Raises
    ------
    UserError
        When one has no such key or value.
    """
    return agent(name).settings().parse(changes, f"train {name}")
