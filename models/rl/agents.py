"""The agents that can be trained: a new one is one line."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from data.errors import unknown_name
from models.rl import params
from models.rl.params import Run

if TYPE_CHECKING:
    from models.rl.algorithms.base import AgentAlgorithm


@dataclass(frozen=True)
class Agent:
    """An agent's line.

    Attributes
    ----------
    maker : str
        Makes its environments; see `models.rl.runner.make`.
    algorithm : str
        ``module:class``.
    params : type
        Settings of its training, with its defaults.
    summary : str
        What it is, in a few words.
    """

    maker: str
    algorithm: str
    params: type[Run]
    summary: str

    def load(self) -> type[AgentAlgorithm]:
        """Its algorithm, which imports Ray and torch."""
        module, _, name = self.algorithm.partition(":")
        return cast("type[AgentAlgorithm]", getattr(importlib.import_module(module), name))


AGENTS: dict[str, Agent] = {
    "tcco": Agent(
        "models.envs.tcco:batch",
        "models.rl.algorithms.replay:TransformerDqnAlgorithm",
        params.TransformerDqn,
        "windows of all subflows of an MPTCP connection (Transformer, DQN)",
    ),
    "nuwa": Agent(
        "models.envs.nuwa:batch",
        "models.rl.algorithms.ppo:PpoAlgorithm",
        params.RecurrentPpo,
        "a receiver that steers its sender (LSTM, PPO)",
    ),
    "macc": Agent(
        "models.envs.macc:batch",
        "models.rl.algorithms.replay:VdnAlgorithm",
        params.Macc,
        "senders and routers that cooperate (VDN)",
    ),
    "recall": Agent(
        "models.rl.known:recall",
        "models.rl.algorithms.ppo:PpoAlgorithm",
        params.RecurrentPpo,
        "a known optimum for a network with memory: 1",
    ),
    "recall-transformer": Agent(
        "models.rl.known:recall",
        "models.rl.algorithms.replay:TransformerDqnAlgorithm",
        params.TransformerDqn,
        "as recall, for the Transformer",
    ),
    "matrix": Agent(
        "models.rl.known:matrix",
        "models.rl.algorithms.replay:VdnAlgorithm",
        params.Vdn,
        "a known optimum for a team: 1 a step",
    ),
}
"""Name -> agent."""


def agent(name: str) -> Agent:
    """An agent by its name.

    Raises
    ------
    UserError
        With the nearest name, where there is none.
    """
    if name not in AGENTS:
        raise unknown_name("agent", name, AGENTS)
    return AGENTS[name]


def settings(name: str, changes: dict[str, Any]) -> Run:
    """An agent's settings, with changes.

    Raises
    ------
    UserError
        When one has no such key or value.
    """
    return agent(name).params.parse(changes, f"train {name}")
