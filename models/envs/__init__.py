"""Environments: glue between the simulator, the observations of `features` and a reward.

Importing this registers ``cczoo/TCCO-v0`` and ``cczoo/Nuwa-v0`` with gymnasium, which also finds
them by ``gymnasium.make("models.envs:cczoo/TCCO-v0")``. MA-CC's is a PettingZoo environment,
`models.envs.macc.parallel_env`. docs/environments.md has their whole contract.
"""

from __future__ import annotations

import gymnasium

ENVIRONMENTS: dict[str, tuple[str, str]] = {
    "cczoo/TCCO-v0": ("models.envs.tcco:TccoEnv", "models.envs.vector:tcco"),
    "cczoo/Nuwa-v0": ("models.envs.nuwa:NuwaEnv", "models.envs.vector:nuwa"),
}
"""id -> its class and the maker of many of it, imported when first made."""

for _name, (_single, _vector) in ENVIRONMENTS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_single, vector_entry_point=_vector)
