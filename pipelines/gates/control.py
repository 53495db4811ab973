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
        Loss of mean power against the champion that is let pass, in multiples of CUBIC's; this and
        what follows of routers alone in multiples of their sender's behind FIFO queues.
    worst : float
        Least mean power of a family of scenarios, in multiples of CUBIC's there.
    neighbour : float
        Least goodput of CUBIC flows beside it, in multiples of what they have beside another one.
    decision_us : float
        Most that a decision may cost (us).
    each : int
        Scenarios of each of the league's families.
    """

    margin: float = Field(0.05, ge=0, le=10)
    worst: float = Field(0.5, ge=0, le=10)
    neighbour: float = Field(0.5, ge=0, le=10)
    decision_us: float = Field(5_000.0, gt=0, le=1e9)
    each: int = Field(5, ge=1, le=1000)


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Play both in the league's families, beside CUBIC; not for other kinds of models."""
    from models.closedloop import Player
    from models.policies import ENTRY
    from models.policies.entry import of_entry
    from models.stats.intervals import by_connection
    from pipelines.gates import played

    if ENTRY not in comparison.candidate.meta.files:
        return Finding(None, "no policy")
    comparison.check_alike()
    player = Player(of_entry(comparison.candidate))
    families = played.scenes(player, settings.each)
    judge = played.Judge.of(families, played.reference(player, families))
    found = judge.played(player)
    means = found.means
    worst = min(means, key=lambda name: means[name])
    neighbour = min(found.left.values())
    evidence: dict[str, Any] = {
        "scenarios": judge.digest,
        "reference": judge.control,
        "runs": judge.count,
        "power": float(found.every.mean()),
        "worst": means[worst],
        "worst_in": worst,
        "families": means,
        "neighbour": neighbour,
        "decision_us": player.decision_us,
    }
    problems = []
    if means[worst] < settings.worst:
        problems.append(f"less than {settings.worst:g} of {judge.title}'s power in {worst}")
    if neighbour < settings.neighbour:
        problems.append(f"leaves CUBIC flows less than {settings.neighbour:g} of their goodput")
    if player.decision_us > settings.decision_us:
        problems.append(f"a decision costs more than {settings.decision_us:g} us")
    if comparison.champion is not None:
        try:
            champion = Player(of_entry(comparison.champion))
            if missed := played.missed(player, champion, settings.each):
                problems.append(
                    f"the champion fits {len(missed)} scenarios that it doesn't fit, such as "
                    f"{missed[0]}"
                )
            before = judge.played(champion)
        except UserError as error:
            # What observed otherwise can't be played any more: a person has to decide.
            problems.append(f"the champion can't be played: {error}")
        else:
            lost = found.every - before.every
            evidence["difference"] = by_connection(lost, np.arange(len(lost)))
            if lost.mean() < -settings.margin and evidence["difference"]["high"] < 0:
                problems.append(f"{lost.mean():+.3f} of {judge.title}'s power against the champion")
    figures = (
        f"power {evidence['power']:.2f} of {judge.title}'s, {means[worst]:.2f} in {worst}; leaves "
        f"CUBIC flows {neighbour:.2f} of their goodput; {player.decision_us:.0f} us a decision "
        f"({judge.count} scenarios, {judge.digest[:12]})"
    )
    logged = {key: value for key, value in evidence.items() if key != "families"}
    logged |= {f"families.{name}": value for name, value in means.items()}
    if "difference" in evidence:
        logged |= {"difference": evidence["difference"]["mean"]}
    return Finding(not problems, "; ".join([*problems, figures]), evidence, logged)
