"""The agents that can be trained: a new one is one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.errors import unknown_name
from models.rl.comparisons.lines import COMPARISONS
from models.rl.line import DQN, PPO, TWIN, VDN, Agent

if TYPE_CHECKING:
    from models.rl.params import Run

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
        training_only=TWIN,
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

OFFLINE: dict[str, Agent] = {
    f"tcco-{method}": replace(AGENTS["tcco"], summary=f"TCCO, learned from logs alone ({words})")
    for method, words in {
        "bc": "behaviour cloning",
        "cql": "discrete CQL",
        "iql": "IQL",
        "ensemble": "a pessimistic ensemble",
    }.items()
}
"""What `models.offline` leaves: networks of the agent that logs were learned for."""


def agent(name: str) -> Agent:
    """An agent by its name.

    Raises
    ------
    UserError
        With the nearest name, where there is none.
    """
    known = AGENTS | COMPARISONS | KNOWN | OFFLINE
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
    line = agent(name)
    return line.settings().parse(merged(line.preset, changes), f"train {name}")


def merged(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A tree of settings with others in it, key by key."""
    found = dict(tree)
    for key, value in changes.items():
        below = found.get(key)
        deeper = isinstance(below, Mapping) and isinstance(value, Mapping)
        found[key] = merged(below, value) if deeper else value  # type: ignore[arg-type]
    return found
