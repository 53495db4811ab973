"""Runs of trained agents in the papers' scenarios, kept as those of the classical controls are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import UserError
from pipelines.studies.papers.runs import Kept, Run, Task, flat

if TYPE_CHECKING:
    from data.netsim.scenario import Scenario
    from models.closedloop import Player


@dataclass(frozen=True)
class Played:
    """A run of an agent: its place among the results, and who plays it."""

    task: Task
    player: Player
    identity: str

    def key(self) -> str:
        """Hash of all that its result depends on."""
        return hashlib.sha256(f"{self.task.key()}{self.identity}".encode()).hexdigest()


def tasks(
    name: str, variants: Mapping[str, Scenario], agents: Mapping[str, Player], seeds: int
) -> list[Played]:
    """Runs of all agents that a scenario compares, in its variants that each of them fits.

    Parameters
    ----------
    name : str
        Name of the scenario.
    variants : mapping
        Label -> scenario, other readings included.
    agents : mapping
    seeds : int
    """
    from models.policies.identity import identity

    found = []
    for agent, player in agents.items():
        there = [label for label, spec in variants.items() if _runs_in(agent, label, spec, player)]
        digest = identity(player.policy) if there else ""
        found += [
            Played(Task(name, label, agent, seed, variants[label]), player, digest)
            for label in there
            for seed in range(seeds)
        ]
    return found


def _runs_in(agent: str, label: str, spec: Scenario, player: Player) -> bool:
    line = spec.paper.learned.get(agent)
    if line is None or (line.at and label not in line.at):
        return False
    if not line.at and any(
        label.endswith(reading) and other.controllers
        for reading, other in spec.paper.readings.items()
    ):
        return False
    try:
        player.check(spec)
    except UserError:
        return False
    return True


def run(played: Played, kept: Kept) -> Run:
    """Metrics of a run: those that are kept, or played and kept now."""
    key = played.key()
    found = kept.found(key)
    if found is not None:
        return found
    task = played.task
    row = played.player.play([(task.spec, task.seed)])[0]
    # What a decision costs is the machine's, and would make each page another.
    row.pop("decision_us")
    return kept.keep(key, flat(row))
