"""Put each player into the scenarios that it fits, and say why one fits none."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from data.errors import UserError
from data.netsim.scenario import Scenario
from pipelines.league import players
from pipelines.league.draw import Drawn
from pipelines.league.families import REFERENCE
from pipelines.league.runs import Job
from pipelines.league.scores import has_neighbours


def jobs(given: Sequence[players.Entrant], drawn: Sequence[Drawn]) -> list[Job]:
    """Each player in the scenarios that it fits; the reference where it is compared.

    Players that fit none of the scenarios are named on stderr, with the reason.

    Raises
    ------
    UserError
        When nobody fits any of the scenarios.
    """
    found, fitting = [], set()
    for one in drawn:
        there = [player for player in given if players.fits(player, one.spec)]
        fitting |= {*there}
        extra = [players.Entrant(REFERENCE)] if there and has_neighbours(one) else []
        found += [Job(player, one) for player in dict.fromkeys([*there, *extra])]
    reasons: dict[str, list[str]] = {}
    for player in given:
        if player not in fitting:
            reasons.setdefault(_reason(player, drawn[0].spec), []).append(player.name)
    lines = [f"{', '.join(left)}: {reason}" for reason, left in reasons.items()]
    if not found:
        raise UserError(f"--cc: nobody to play there: {'; '.join(lines) or 'give a name'}")
    for line in lines:
        print(f"in none of these scenarios: {line}", file=sys.stderr)
    return found


def _reason(one: players.Entrant, spec: Scenario) -> str:
    """Why a player that fits nowhere doesn't fit the first scenario."""
    if one.name in players.CLASSICAL:
        return "coupled controls need several paths"
    player = players.opened(one)
    if player.policy.runs_routers:
        return "it runs routers, and all queues here are FIFO"
    reason = ""
    try:
        player.check(spec)
    except UserError as error:
        reason = str(error)
    return reason
