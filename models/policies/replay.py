"""A short run that is kept with a policy: whoever plays it again must choose the same windows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from data.netsim.scenario import Scenario
from models.closedloop import Player
from models.envs.stage import LEVERS
from models.policies.policy import Policy

SEED = 1
_BACK = {"rate_mbps": 30.0, "delay_ms": 10.0, "queue_packets": 100}
_LINKS = {
    "one": {"steps": [[0.0, 12.0], [1.5, 8.0]], "delay_ms": 10.0, "queue_packets": 40},
    "two": {"rate_mbps": 10.0, "delay_ms": 15.0, "queue_packets": 40, "loss": 0.001},
    "back": _BACK,
}
_ONE, _TWO = ({"forward": [name], "back": ["back"]} for name in ("one", "two"))
SHORT: dict[str, dict[str, Any]] = {
    "tcco": {
        "duration_s": 3.0,
        "links": _LINKS,
        "flows": [{"name": "flow", "paths": [_ONE, _TWO]}],
    },
    "nuwa": {
        "duration_s": 8.0,
        "links": _LINKS,
        "flows": [{"name": "flow", "target_delay_ms": 30.0, "paths": [_ONE]}],
    },
    "macc": {
        "duration_s": 12.0,
        "bottleneck": "one",
        "links": _LINKS,
        "flows": [{"name": "flow", "count": 2, "start_spread_s": 0.5, "paths": [_ONE]}],
    },
}
"""Environment -> the scenario that is played."""


def recorded(policy: Policy) -> dict[str, Any]:
    """Play the short scenario of a policy.

    Returns
    -------
    dict
        ``scenario``, ``seed`` and ``decisions``: of each the ``actions`` of the parts that are
        there, and by what it acts (``windows``, in segments, k or shares that are dropped) as the
        decisions before have left it.
    """
    # As it is read back: links have their random numbers by their order.
    tree = json.loads(json.dumps(SHORT[policy.environment], sort_keys=True))
    return {"scenario": tree, "seed": SEED, "decisions": _decisions(policy, tree, SEED)}


def differing(policy: Policy, kept: Mapping[str, Any]) -> list[str]:
    """Play what was recorded again, and say what is different; nothing if it is the same."""
    now, before = _decisions(policy, kept["scenario"], kept["seed"]), kept["decisions"]
    for number, (one, other) in enumerate(zip(now, before, strict=False)):
        for what in ("windows", "actions"):
            if one[what] != other[what]:
                return [f"decision {number}: {what} {one[what]}, recorded {other[what]}"]
    if len(now) != len(before):
        return [f"{len(now)} decisions, recorded {len(before)}"]
    return []


def _decisions(policy: Policy, tree: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def note(batch: Any, actions: Any) -> None:
        state = batch.networks[0].state
        windows = {field: getattr(state, array)[field].round(6).tolist() for array, field in LEVERS}
        found.append({"actions": actions[0][batch.mask[0]].tolist(), "windows": windows})

    spec = Scenario.parse(tree, "replay")
    Player(policy).play([(spec, seed)], note)
    return found
