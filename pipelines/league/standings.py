"""Rank players by power: interquartile means, win rates and worst cases, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.stats.aggregate import interval, iqm
from pipelines.league.families import FAMILIES, STANDINGS
from pipelines.league.metrics import METRICS, Row

Floats = NDArray[np.float64]
BESIDE = ("jain", "share", "left")
"""Metrics of families with neighbours alone."""


class Estimate(NamedTuple):
    """A value with its 95 % interval; None if too few runs have it, or all are one scenario's."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Place:
    """A player's place in a family or a standing.

    Attributes
    ----------
    cc, family : str
        Player; key of `FAMILIES`, `GIVEN` or `STANDINGS`.
    power : Estimate
        Interquartile mean over scenarios.
    wins : Estimate or None
        Share of comparisons with others, scenario by scenario, in which this one has more power,
        ties counting half; None if nobody else plays.
    behind : Estimate
        Share of scenarios in which the first of the ranking has more power than this one.
    worst, worst_in : float, str
        The least power, and the scenario that it was in.
    metrics : dict
        Other metrics of `METRICS` -> interquartile mean over scenarios.
    """

    cc: str
    family: str
    power: Estimate
    wins: Estimate | None
    behind: Estimate
    worst: float
    worst_in: str
    metrics: dict[str, Estimate]

    def row(self) -> dict[str, Any]:
        """The place as programs read it."""
        return {
            "cc": self.cc,
            "family": self.family,
            "win_rate": None if self.wins is None else self.wins.value,
            "power": self.power.value,
            "worst": self.worst,
            "low": self.power.low,
            "high": self.power.high,
        }


Played = Mapping[str, Sequence[str]]
"""Family -> names of its scenarios."""


def rankings(played: Played, rows: Mapping[tuple[str, str], Row]) -> dict[str, list[Place]]:
    """Places in every family, best first; then in each standing whose families all were played.

    Parameters
    ----------
    played : mapping
        Family -> its scenarios.
    rows : mapping
        (scenario, player) -> figures of `METRICS`.
    """
    groups = {family: [family] for family in played}
    for standing in STANDINGS:
        members = [name for name, family in FAMILIES.items() if family.standing == standing]
        if members and all(name in played for name in members):
            groups[standing] = members
    found = {name: ranked(name, [played[f] for f in families], rows)
             for name, families in groups.items()}  # fmt: skip
    return {name: places for name, places in found.items() if places}


def unranked(played: Played, rows: Mapping[tuple[str, str], Row]) -> list[str]:
    """One line for each player that fits only some scenarios of a family: it has no place there."""
    lines = []
    for family, scenarios in played.items():
        there = set(scenarios)
        counts = Counter(cc for one, cc in rows if one in there)
        lines += [
            f"{cc}: fits {count} of {len(scenarios)} scenarios of {family}: no place there"
            for cc, count in counts.items()
            if count < len(scenarios)
        ]
    return lines


def ranked(
    name: str, families: Sequence[Sequence[str]], rows: Mapping[tuple[str, str], Row]
) -> list[Place]:
    """Places of all players that played every scenario of these families, which count alike."""
    scenarios = {one for family in families for one in family}
    by_player: dict[str, set[str]] = {}
    for scenario, cc in rows:
        by_player.setdefault(cc, set()).add(scenario)
    players = [cc for cc, seen in by_player.items() if scenarios <= seen]
    if not players:
        return []
    power = scores(players, families, rows, "power")
    sure = all(_different(players, family, rows) > 1 for family in families)
    means = iqm(power)
    first = power[int(np.argmax(means))]
    ahead = (np.sign(power[:, None] - power[None, :]) + 1) / 2
    others = max(1, len(players) - 1)
    estimates = {
        "power": _estimates(power, iqm, sure),
        # Beside itself a player counts half.
        "wins": _estimates((ahead.sum(axis=1) - 0.5) / others, _mean, sure),
        "behind": _estimates((np.sign(first - power) + 1) / 2, _mean, sure),
    }
    more = {
        metric: _estimates(scores(players, families, rows, metric), iqm, sure)
        for metric in METRICS
        if metric != "power" and (len(families) == 1 or metric not in BESIDE)
    }
    labels = np.array([list(family) for family in families]).T
    places = []
    for i in np.argsort(-means, kind="stable").tolist():
        least = np.unravel_index(int(np.argmin(power[i])), power[i].shape)
        found = {metric: one for metric, values in more.items() if (one := values[i]) is not None}
        of_power, wins, behind = (estimates[key][i] for key in ("power", "wins", "behind"))
        assert of_power is not None
        assert behind is not None
        places.append(
            Place(players[i], name, of_power, wins if len(players) > 1 else None, behind,
                  float(power[i][least]), str(labels[least]), found)
        )  # fmt: skip
    return places


def scores(
    players: Sequence[str],
    families: Sequence[Sequence[str]],
    rows: Mapping[tuple[str, str], Row],
    metric: str,
) -> Floats:
    """A metric of all runs: float64 array [players, scenarios, families], NaN for none."""
    table = [[[rows[one, cc][metric] for one in family] for family in families] for cc in players]
    return np.moveaxis(np.array(table, dtype=np.float64), 1, 2)


def _different(
    players: Sequence[str], family: Sequence[str], rows: Mapping[tuple[str, str], Row]
) -> int:
    """How many scenarios aren't repetitions: without chance another seed changes nothing."""
    return len({tuple(tuple(rows[one, cc].values()) for cc in players) for one in family})


def _estimates(values: Floats, statistic: Any, sure: bool) -> list[Estimate | None]:
    """Statistic of each player, with an interval if scenarios differ and no run lacks the value."""
    if sure and np.isfinite(values).all():
        lows, highs = interval(statistic, values)
        points = np.atleast_1d(statistic(values))
        return [Estimate(*map(float, one)) for one in zip(points, lows, highs, strict=True)]
    left = [one[np.isfinite(one)] for one in values]
    return [Estimate(float(statistic(v[:, None])), None, None) if v.size else None for v in left]


def _mean(values: Floats) -> Any:
    return values.mean(axis=(-2, -1))
