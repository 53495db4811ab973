"""Players of the league: the one place that knows one kind of them from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.errors import unknown_name
from data.netsim.cc import CONTROLS, COUPLED

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario

CLASSICAL = tuple(name for name in CONTROLS if name != "agent")
"""Controls that need no agent."""


def named(text: str) -> list[str]:
    """Players of a list of names with commas between; ``all`` are all classical controls.

    Raises
    ------
    UserError
        For an unknown name, with the nearest one.
    """
    found: dict[str, None] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "all":
            found |= dict.fromkeys(CLASSICAL)
        elif name in CLASSICAL:
            found[name] = None
        else:
            raise unknown_name("congestion control", name, ("all", *CLASSICAL))
    return list(found)


def fits(name: str, spec: Scenario) -> bool:
    """Whether a player can be put into a scenario: coupled controls need several paths."""
    paths = [len(flow.paths) for flow in spec.flows if flow.measure and flow.cc is None]
    return name not in COUPLED or min(paths, default=1) > 1


def play(name: str, spec: Scenario, seed: int) -> dict[str, Any]:
    """Metrics of one run, as of `data.netsim.metrics.simulate`."""
    from data.netsim.metrics import simulate

    return simulate(spec, name, seed)


def identity(name: str) -> str:
    """Hash of what plays under a name, for kept runs; empty for the simulator's own sources."""
    return ""
