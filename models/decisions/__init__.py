"""Decisions that any control took, as an agent would have seen, taken and been paid for them.

Each module of `AGENTS` has ``Settings``, ``about(settings)``, which says what its table holds, and
``of_log(row, events, settings)``, which makes a run of a connection or raises `Refused`. All of
them call what the agent's environment calls: its observer, its rules and its reward.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from data.decisions.run import Run
from data.decisions.schema import About
from data.errors import unknown_name
from data.netsim.events import KERNEL
from data.store import Series
from data.strict import Strict

AGENTS = {
    "tcco": "models.decisions.tcco",
    "nuwa": "models.decisions.nuwa",
    "macc": "models.decisions.macc",
}
"""Agent -> module that makes its decisions."""


class Refused(Exception):
    """A log doesn't hold what an agent's decisions need; its text is the reason."""


@dataclass(frozen=True)
class Source:
    """What makes an agent's decisions.

    Attributes
    ----------
    settings : type
        Settings of the observer, the actions and the reward.
    about : callable
        Settings -> what a file of its decisions says of itself.
    of_log : callable
        A connection's row, its events and the settings -> `Run`; raises `Refused`.
    """

    settings: type[Strict]
    about: Callable[[Any], About]
    of_log: Callable[[dict[str, Any], Series, Any], Run]


def source(agent: str) -> Source:
    """What makes an agent's decisions, by its name.

    Raises
    ------
    UserError
        With the nearest name, if there is none.
    """
    if agent not in AGENTS:
        raise unknown_name("agent", agent, AGENTS)
    module = importlib.import_module(AGENTS[agent])
    return Source(module.Settings, module.about, module.of_log)


def intervals(row: dict[str, Any], interval_us: int) -> tuple[int, int]:
    """When a log's first interval begins, and how many whole ones there are.

    The simulator's clock is 0 when a simulation begins, and its environments count from there; a
    kernel's clock says nothing, so that the first event begins the first interval.
    """
    if row["start_us"] is None or row["end_us"] is None:
        return 0, 0
    start = 0 if row["format"] == KERNEL else int(row["start_us"])
    return start, (int(row["end_us"]) + 1 - start) // interval_us


def behaviour(row: dict[str, Any], otherwise: str) -> str:
    """Which control a connection ran: what the log says of it, or else what the user does.

    Raises
    ------
    Refused
        If neither says it.
    """
    name = row["cc"] or otherwise
    if not name:
        raise Refused("which control decided isn't known: give --behaviour NAME")
    return str(name)


def scenario(row: dict[str, Any]) -> str:
    """Where a connection ran: the log that it is of, since each log's paths may be others."""
    return str(row["source"])
