"""Players of the league: the one place that knows one kind of them from another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Entrant:
    """A player as the league's processes open it.

    Attributes
    ----------
    name : str
        As it was given, which figures bear.
    places : tuple of str
        A policy's, as from `pipelines.controllers.places`, so that all runs are of one version.
    delay_ms : float
        How long after an observation a policy's action takes effect.
    """

    name: str
    places: tuple[str, ...] = ()
    delay_ms: float = 0.0


def entrants(names: Sequence[str], delay_ms: float = 0.0) -> list[Entrant]:
    """Players by their names.

    Parameters
    ----------
    names : sequence of str
        As from `named`.
    delay_ms : float, optional
        The delay of all policies among them (ms).

    Raises
    ------
    UserError
        When there is a delay and no policy, or one isn't there.
    """
    from pipelines.controllers import places

    if delay_ms and all(name in CLASSICAL for name in names):
        raise UserError("--delay: no policy among --cc: it is the delay of a policy's actions")
    return [
        Entrant(name) if name in CLASSICAL else Entrant(name, places(name), delay_ms)
        for name in names
    ]


def fits(one: Entrant, spec: Scenario) -> bool:
    """Whether a player can be put into a scenario: coupled controls need several paths.

    Policies that run routers fit nowhere: all queues of the league are FIFO.

    Raises
    ------
    UserError
        When a policy can't be opened, or is to act later than its next decision.
    """
    name = one.name
    if name not in CLASSICAL:
        return placed(opened(one), spec)
    paths = [len(flow.paths) for flow in spec.flows if flow.measure and flow.cc is None]
    return name not in COUPLED or min(paths, default=1) > 1


def placed(policy: Player, spec: Scenario) -> bool:
    """Whether a policy can be put into a scenario of the league, where it runs no queue."""
    try:
        return not policy.check(spec).routers
    except UserError:
        return False


def play(one: Entrant, spec: Scenario, seed: int) -> dict[str, Any]:
    """Metrics of one run, as of `data.netsim.metrics.simulate`."""
    from data.netsim.metrics import simulate

    if one.name not in CLASSICAL:
        return opened(one).play([(spec, seed)])[0]
    return simulate(spec, one.name, seed)


@cache
def identity(one: Entrant) -> str:
    """Hash of what plays under a name, for kept runs; empty for the simulator's own sources."""
    if one.name in CLASSICAL:
        return ""
    from models.policies.identity import identity as of_policy

    late = f" delay {one.delay_ms:g}" if one.delay_ms else ""
    return of_policy(opened(one).policy) + late


@cache
def opened(one: Entrant) -> Player:
    """The policy of a player, opened once in each process."""
    from pipelines.controllers import at

    return at(one.places, one.name, one.delay_ms)
