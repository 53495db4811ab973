"""Put each player into the scenarios that it fits, and say why one fits none."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from data.errors import UserError
from data.netsim.scenario import Scenario
from pipelines.controllers import player
from pipelines.league import players
from pipelines.league.draw import Drawn
from pipelines.league.families import REFERENCE
from pipelines.league.runs import Job
from pipelines.league.scores import has_neighbours


def jobs(names: Sequence[str], drawn: Sequence[Drawn]) -> list[Job]:
    """Each player in the scenarios that it fits; the reference where it is compared.

    Players that fit none of the scenarios are named on stderr, with the reason.

    Raises
    ------
    UserError
        When nobody fits any of the scenarios.
    """
    found, fitting = [], set()
    for one in drawn:
        there = [name for name in names if players.fits(name, one.spec)]
        fitting |= {*there}
        extra = [REFERENCE] if there and has_neighbours(one) else []
        found += [Job(name, one) for name in dict.fromkeys([*there, *extra])]
    reasons: dict[str, list[str]] = {}
    for name in names:
        if name not in fitting:
            reasons.setdefault(_reason(name, drawn[0].spec), []).append(name)
    lines = [f"{', '.join(left)}: {reason}" for reason, left in reasons.items()]
    if not found:
        raise UserError(f"--cc: nobody to play there: {'; '.join(lines) or 'give a name'}")
    for line in lines:
        print(f"in none of these scenarios: {line}", file=sys.stderr)
    return found


def _reason(name: str, spec: Scenario) -> str:
    """Why a player that fits nowhere doesn't fit the first scenario."""
    if name not in players.CLASSICAL:
        try:
            player(name).check(spec)
        except UserError as error:
            return str(error)
    return "coupled controls need several paths"
