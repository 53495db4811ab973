"""The control gate: a policy must not lose power, starve its neighbours, or be slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from data.errors import UserError
from data.strict import Strict
from pipelines.gates import Finding

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison


class Settings(Strict):
    """Settings under ``promotion.gates.control``.

    Attributes
    ----------
    margin : float
        Loss of mean power against the champion that is let pass, in multiples of CUBIC's.
    worst : float
        Least mean power of a family of scenarios, in multiples of CUBIC's.
    neighbour : float
        Least goodput of a CUBIC flow beside it, in multiples of what it has beside another one.
    decision_us : float
        Most that a decision may cost (us).
    seeds : int
        Runs of each scenario.
    """

    margin: float = Field(0.05, ge=0, le=10)
    worst: float = Field(0.5, ge=0, le=10)
    neighbour: float = Field(0.5, ge=0, le=10)
    decision_us: float = Field(5_000.0, gt=0, le=1e9)
    seeds: int = Field(4, ge=1, le=1000)


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Play both in the scenarios of `models.policies.proving`; not for other kinds of models."""
    from models.closedloop import Player
    from models.policies import ENTRY, proving
    from models.policies.entry import of_entry
    from models.stats.intervals import by_connection

    if ENTRY not in comparison.candidate.meta.files:
        return Finding(None, "no policy")
    player = Player(of_entry(comparison.candidate))
    sets = proving.scenarios(proving.paths_of(player))
    found = proving.powers(player, sets, settings.seeds)
    families = {name: float(values.mean()) for name, values in found.items() if name in sets}
    every = np.concatenate([found[name] for name in families])
    worst = min(families, key=lambda name: families[name])
    neighbour = float(found["neighbour"].mean())
    evidence: dict[str, Any] = {
        "scenarios": proving.digest(sets),
        "power": float(every.mean()),
        "families": families,
        "neighbour": neighbour,
        "decision_us": player.decision_us,
    }
    problems = []
    if families[worst] < settings.worst:
        problems.append(f"less than {settings.worst:g} of CUBIC's power when {worst}")
    if neighbour < settings.neighbour:
        problems.append(f"leaves a CUBIC flow less than {settings.neighbour:g} of its goodput")
    if player.decision_us > settings.decision_us:
        problems.append(f"a decision costs more than {settings.decision_us:g} us")
    if comparison.champion is not None:
        try:
            before = proving.powers(Player(of_entry(comparison.champion)), sets, settings.seeds)
        except UserError as error:
            # What observed otherwise can't be played any more: a person has to decide.
            problems.append(f"the champion can't be played: {error}")
        else:
            lost = every - np.concatenate([before[name] for name in families])
            evidence["difference"] = by_connection(lost, np.arange(len(lost)))
            if lost.mean() < -settings.margin and evidence["difference"]["high"] < 0:
                problems.append(f"{lost.mean():+.3f} of CUBIC's power against the champion")
    figures = (
        f"power {evidence['power']:.2f} of CUBIC's, {families[worst]:.2f} when {worst}; leaves a "
        f"CUBIC flow {neighbour:.2f} of its goodput; {player.decision_us:.0f} us a decision "
        f"(scenarios {evidence['scenarios'][:12]})"
    )
    return Finding(not problems, "; ".join([*problems, figures]), evidence)
