"""Players of the league: the one place that knows one kind of them from another."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import models
from data.errors import UserError
from data.netsim.cc import CONTROLS, COUPLED
from models import policies

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from models.closedloop import Player

CLASSICAL = tuple(name for name in CONTROLS if name != "agent")
"""Controls that need no agent."""
_ROOT = Path(models.__file__).parent
_SOURCES = ("envs", "policies", "rl", "closedloop.py", "../features", "../data/netsim/cc")
"""Code that a policy's run depends on besides the simulator's."""


def named(text: str) -> list[str]:
    """Players of a list of names with commas between.

    ``all`` are the classical controls and the policies of the zoo; others are policies, by the
    names that ``cczoo evaluate cc`` takes.

    Raises
    ------
    UserError
        For an unknown name, with the nearest one.
    """
    found: dict[str, None] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "all":
            found |= dict.fromkeys((*CLASSICAL, *policies.kept(_ROOT / "zoo")))
            continue
        if name not in CLASSICAL:
            policies.check_name(name, _ROOT / "zoo", ("all", *CLASSICAL))
        found[name] = None
    return list(found)


def fits(name: str, spec: Scenario) -> bool:
    """Whether a player can be put into a scenario: coupled controls need several paths.

    Policies that run routers fit nowhere: all queues of the league are FIFO.

    Raises
    ------
    UserError
        When a policy can't be opened.
    """
    if name not in CLASSICAL:
        policy = _policy(name)
        try:
            return not policy.check(spec).routers
        except UserError:
            return False
    paths = [len(flow.paths) for flow in spec.flows if flow.measure and flow.cc is None]
    return name not in COUPLED or min(paths, default=1) > 1


def play(name: str, spec: Scenario, seed: int) -> dict[str, Any]:
    """Metrics of one run, as of `data.netsim.metrics.simulate`."""
    from data.netsim.metrics import simulate

    if name not in CLASSICAL:
        return _policy(name).play([(spec, seed)])[0]
    return simulate(spec, name, seed)


@cache
def identity(name: str) -> str:
    """Hash of what plays under a name, for kept runs; empty for the simulator's own sources."""
    if name in CLASSICAL:
        return ""
    policy = _policy(name).policy
    digest = hashlib.sha256(repr([policy.environment, policy.network, dict(policy.settings),
                                  dict(policy.params), policy.kinds]).encode())  # fmt: skip
    for key, array in sorted(policy.weights.items()):
        digest.update(f"{key} {array.dtype} {array.shape}".encode() + array.tobytes())
    for place in _SOURCES:
        path = _ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _policy(name: str) -> Player:
    from pipelines.controllers import player

    return player(name)
