"""Plays of a policy in the league's families, beside a reference: what the gate judges by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from data.netsim.metrics import simulate
from models.policies import proving
from pipelines.league import capacity, draw, players, scores
from pipelines.league.draw import Drawn
from pipelines.league.families import FAMILIES, REFERENCE
from pipelines.studies.papers.runs import Run, flat

if TYPE_CHECKING:
    from models.closedloop import Player
    from pipelines.league.metrics import Row

OWN = "policy"
SEED = 7919
"""The drawing's. It isn't the published list's, which the league's page scores: what is chosen by
a scenario isn't judged by it."""
TITLES = {"cubic": "CUBIC", "reno": "NewReno"}
"""References -> as they are called in findings."""
Scenes = dict[str, list[Drawn]]
"""Family -> scenarios."""


def scenes(player: Player, each: int) -> Scenes:
    """The first scenarios that a policy fits of each of the league's families, drawn by `SEED`.

    Routers fit none of them, since all queues are FIFO: they are proved in scenarios of their own
    (`models.policies.proving`), each with as many seeds.

    Parameters
    ----------
    player : Player
    each : int
        Scenarios of a family.
    """
    found = {family: fitting[:each] for family, fitting in _fitting(player, each).items()}
    if found:
        return found
    return {
        family: [
            Drawn(family, f"{family}-{i:02d}-{seed}", seed, spec)
            for i, spec in enumerate(specs)
            for seed in range(each)
        ]
        for family, specs in proving.scenarios().items()
    }


def missed(player: Player, other: Player, each: int) -> list[str]:
    """Names of the scenarios drawn that another player fits and this one doesn't.

    Parameters
    ----------
    player, other : Player
    each : int
        As for `scenes`.
    """
    own, others = (
        {one.name for family in _fitting(this, each).values() for one in family}
        for this in (player, other)
    )
    return sorted(others - own)


def _fitting(player: Player, each: int) -> Scenes:
    found: Scenes = {}
    for family in FAMILIES:
        drawn = draw.scenarios([family], SEED, max(each, draw.EACH))
        if fitting := [one for one in drawn if players.placed(player, one.spec)]:
            found[family] = fitting
    return found


def reference(player: Player, families: Scenes) -> str:
    """The control that a policy is compared with, behind FIFO queues.

    Routers alone stand behind a sender of the simulator: what they are worth is told beside that
    same sender, or its own merits would count too. All others are compared with the league's.

    Parameters
    ----------
    player : Player
    families : mapping
        As of `scenes`.
    """
    sender = player.check(_all(families)[0].spec).controller
    alone = player.policy.runs_routers and sender in players.CLASSICAL
    return sender if alone else REFERENCE


@dataclass(frozen=True)
class Judge:
    """Scenarios with what the reference does there.

    Attributes
    ----------
    families : mapping
        Family -> its scenarios.
    runs : mapping
        (scenario, `REFERENCE`) -> metrics of the reference, whichever control it is.
    control : str
        The control that the reference is, as of `reference`.
    """

    families: Scenes
    runs: Mapping[tuple[str, str], Run]
    control: str = REFERENCE

    @classmethod
    def of(cls, families: Scenes, control: str = REFERENCE) -> Judge:
        """Play the reference in all scenarios."""
        runs = {
            (one.name, REFERENCE): flat(simulate(one.spec, control, one.seed))
            for one in _all(families)
        }
        return cls(families, runs, control)

    @property
    def title(self) -> str:
        """What the reference is called in findings."""
        return TITLES[self.control]

    @property
    def digest(self) -> str:
        """SHA-256 over all scenarios."""
        return draw.digest(_all(self.families))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(_all(self.families))

    def played(self, player: Player) -> Figures:
        """Play a policy in all scenarios."""
        drawn = _all(self.families)
        runs = dict(self.runs)
        for family in self.families.values():
            own = player.play([(one.spec, one.seed) for one in family])
            runs |= {(one.name, OWN): flat(row) for one, row in zip(family, own, strict=True)}
        rows = scores.rows(drawn, capacity.of_all(drawn), runs, (OWN, REFERENCE))
        power = {}
        for name, family in self.families.items():
            level = np.mean(_column(rows, family, REFERENCE, "power"))
            power[name] = _column(rows, family, OWN, "power") / level
        left = {
            name: float(np.mean(_column(rows, family, OWN, "left")))
            for name, family in self.families.items()
            if all(map(scores.has_neighbours, family))
        }
        return Figures(power, left)


@dataclass(frozen=True)
class Figures:
    """What a policy got.

    Attributes
    ----------
    power : dict
        Family -> the league's power in each scenario over the reference's mean there, float64
        array [N].
    left : dict
        Family with CUBIC neighbours -> their goodput over what they get beside the reference, the
        mean.
    """

    power: dict[str, NDArray[np.float64]]
    left: dict[str, float]

    @property
    def every(self) -> NDArray[np.float64]:
        """Power in all scenarios, float64 array [N]."""
        return np.concatenate(list(self.power.values()))

    @property
    def means(self) -> dict[str, float]:
        """Mean power of each family."""
        return {name: float(values.mean()) for name, values in self.power.items()}


def _all(families: Scenes) -> list[Drawn]:
    return [one for family in families.values() for one in family]


def _column(
    rows: Mapping[tuple[str, str], Row], family: Sequence[Drawn], cc: str, name: str
) -> NDArray[np.float64]:
    """A figure of a player in a family; what it hasn't is 0: nothing came through."""
    return np.array([rows[one.name, cc][name] or 0.0 for one in family])
