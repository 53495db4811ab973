"""Networks of agents, by the names that descriptions of policies give them."""

from __future__ import annotations

NETWORKS: dict[str, str] = {
    "transformer": "models.rl.networks.transformer:TransformerModule",
    "lstm": "models.rl.networks.lstm:RecurrentModule",
    "dueling": "models.rl.networks.dueling:TeamModule",
}
"""Name -> ``module:class`` of an `AgentModule`, which needs no Ray."""
