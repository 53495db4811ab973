"""Networks of agents, by the names that descriptions of policies give them."""

from __future__ import annotations

NETWORKS: dict[str, str] = {
    "transformer": "models.rl.networks.transformer:TransformerModule",
    "lstm": "models.rl.networks.lstm:RecurrentModule",
    "dueling": "models.rl.networks.dueling:TeamModule",
    "joint": "models.rl.networks.joint:JointModule",
    "stacked": "models.rl.networks.stacked:StackedModule",
    "actor": "models.rl.networks.actor:ActorModule",
}
"""Name -> ``module:class`` of an `AgentModule`, which needs no Ray."""

STATELESS = frozenset({"dueling", "actor"})
"""Those whose policies decide by one observation and remember nothing."""
