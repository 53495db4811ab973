"""What the parts of an environment observe and do, in words that an entry keeps."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from typing import Any

from features.spec import Feature

OBSERVED: dict[tuple[str, int], tuple[str, str, str]] = {
    ("tcco", 0): ("features.tcco", "FEATURES", "HALF"),
    ("nuwa", 0): ("features.nuwa", "FEATURES", "HALF"),
    ("macc", 0): ("features.macc", "SENDER", "SENDER_HALF"),
    ("macc", 1): ("features.macc", "ROUTER", "ROUTER_HALF"),
}
"""Environment and kind of part -> module, its features, and what becomes 0.5 of each."""


def observed(environment: str, kind: int) -> tuple[tuple[Feature, ...], tuple[float, ...]]:
    """Features of a kind of part in their order, and the value of each that becomes 0.5."""
    name, features, half = OBSERVED[environment, kind]
    module = importlib.import_module(name)
    return getattr(module, features), getattr(module, half)


def observation_hash(environment: str, kind: int, params: Mapping[str, Any]) -> str:
    """SHA-256 of what a network and the code that makes its inputs must agree on.

    Parameters
    ----------
    environment : str
    kind : int
    params : mapping
        The environment's; those of its observation count.
    """
    features, half = observed(environment, kind)
    tree = {
        "features": [feature.meaning for feature in features],
        "half": list(half),
        "observation": params["observation"],
    }
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def actions(environment: str, kind: int, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of a part's actions, in the order of the network's scores."""
    if environment == "tcco":
        reach = int(params["reach"])
        return tuple(f"{delta:+d}" for delta in range(-reach, reach + 1))
    if environment == "nuwa":
        from models.envs.nuwa_loop import ACTIONS

        return tuple(f"k x {factor:g}" for factor in ACTIONS)
    return ("up", "down", "hold") if kind == 0 else ("keep", "drop")
