"""All that the page, the report and programs show, worked out from what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from data.results import plain
from pipelines.league.families import STANDINGS
from pipelines.studies.offline import kept, statistics, words
from pipelines.studies.offline.kept import ONLINE, SCRATCH
from pipelines.studies.offline.lines import CLONE, HINDSIGHT, LOGGED, Ratio, Row
from pipelines.studies.offline.statistics import ALL, GROUPS, Estimate, Floats, Powers


@dataclass(frozen=True)
class Study:
    """What is kept of the study; the trainings online may be missing.

    Attributes
    ----------
    learned : Learned
    played : Played
    runs : polars DataFrame
    tuning : Tuning or None
    """

    learned: kept.Learned
    played: kept.Played
    runs: pl.DataFrame
    tuning: kept.Tuning | None

    @property
    def methods(self) -> list[str]:
        """Methods that were trained."""
        return list(self.learned.costs)

    @cached_property
    def powers(self) -> Powers:
        """Power of all runs."""
        return Powers(self.runs)

    @cached_property
    def best(self) -> dict[str, str]:
        """Standing -> the control that is best by the logs."""
        return {standing: self.learned.best(standing) for standing in STANDINGS}

    @cached_property
    def hindsight(self) -> dict[str, str]:
        """Standing -> the logged control with the most power in these very scenarios."""
        found = {}
        for standing in STANDINGS:
            scores = {name: power for name in self.learned.rewards[standing]
                      if (power := self.powers.of(name, standing)) is not None}  # fmt: skip
            found[standing] = max(scores, key=lambda one: statistics.score(scores[one]).value)
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """Everybody in the table, methods first."""
        who: dict[str, str | dict[str, str]] = {name: name for name in self.methods}
        who |= {LOGGED: self.best, HINDSIGHT: self.hindsight, ONLINE: ONLINE}
        return [self._row(name, one) for name, one in who.items()]

    def row(self, player: str) -> Row:
        """A player's."""
        return next(one for one in self.rows if one.player == player)

    def _row(self, name: str, who: str | dict[str, str]) -> Row:
        power = {group: self._power(who, group) for group in GROUPS}
        mine = power[ALL]
        beside: dict[str, str | dict[str, str]] = {
            "to_clone": CLONE, "to_logged": self.best, "to_online": ONLINE,
        }  # fmt: skip
        return Row(
            player=name,
            who=_named(who),
            seeds=len(mine),
            scores={group: statistics.score(one) for group, one in power.items()},
            reward=self._reward(name),
            **{
                key: None if other == who or other == CLONE not in self.methods
                else statistics.difference(mine, self._power(other, ALL))
                for key, other in beside.items()
            },
        )  # fmt: skip

    def _power(self, who: str | dict[str, str], group: str) -> Floats:
        found = self.powers.of(who, group)
        if found is None:
            raise UserError(f"{kept.FOLDER / kept.RUNS}: without {who}: play again: {kept.COMMAND}")
        return found

    def _reward(self, name: str) -> Estimate | None:
        found = self.played.returns.get(self.best[_OF_ENVIRONMENT] if name == LOGGED else name)
        return None if found is None else statistics.score(np.array(found)[..., None])

    @cached_property
    def ratios(self) -> list[Ratio]:
        """A line for each method whose networks were trained on."""
        if self.tuning is None:
            return []
        scratch = self.tuning.curves[SCRATCH]
        found = []
        for name, mine in self.tuning.curves.items():
            if name == SCRATCH:
                continue
            shares: dict[str, list[float]] = {"whole": [], "own": []}
            missed = 0
            for seed, one in mine.items():
                target = scratch[seed].end
                own, steps = scratch[seed].reached(target), one.reached(target)
                if steps is None and one.steps[-1] < self.tuning.steps:
                    raise UserError(f"{name}, seed {seed}: its online training isn't whole: go on "
                                    f"by {kept.TUNING.made_by}")  # fmt: skip
                missed += steps is None
                last = scratch[seed].steps[-1]
                shares["whole"].append((steps or one.steps[-1]) / last)
                shares["own"].append((steps or one.steps[-1]) / (own or last))
            ratios = {key: statistics.ratio(values) for key, values in shares.items()}
            found.append(Ratio(method=name, seeds=len(mine), missed=missed, **ratios))
        return found

    @property
    def sentences(self) -> list[str]:
        """Who loses to whom, in words."""
        logged = f"the best logged control ({self.row(LOGGED).who})"
        beside = {one.player: one.to_logged for one in self.rows
                  if one.player in self.methods and one.to_logged is not None}  # fmt: skip
        found = [words.summary(logged, beside)]
        others = {"to_clone": words.title(CLONE), "to_logged": "the best logged control",
                  "to_online": f"the online agent {ONLINE}"}  # fmt: skip
        for name in self.methods:
            row = self.row(name)
            mine = {words_: one for key, words_ in others.items()
                    if (one := getattr(row, key)) is not None}  # fmt: skip
            found.append(words.verdict(name, mine))
        return found

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        costs = self.learned.costs
        tree: Mapping[str, Any] = {
            "decisions": self.learned.decisions,
            "peak_mb": max(one.peak_mb for mine in costs.values() for one in mine),
            "rows": self.rows,
            "ratios": self.ratios,
            "says": self.sentences,
        }
        found: dict[str, Any] = plain(tree)
        return found


def _named(who: str | dict[str, str]) -> str:
    """Who plays, with the standings if those have different ones."""
    if isinstance(who, str):
        return who
    if len(set(who.values())) == 1:
        return next(iter(who.values()))
    return ", ".join(f"{one} on {STANDINGS[standing]}" for standing, one in who.items())


_OF_ENVIRONMENT = "multipath"
"""The standing whose best logged control plays in the environment's episodes, of two paths."""


def read(folder: Path) -> Study:
    """What is kept of the study.

    Raises
    ------
    UserError
        When something is missing or of another version.
    """
    path = folder / kept.RUNS
    if not path.is_file():
        raise UserError(f"{path}: missing: make it with `{kept.PLAYED.made_by}`")
    there = (folder / kept.TUNING.name).is_file()
    tuning = kept.TUNING.read(folder) if there else None
    runs = pl.read_parquet(path)
    return Study(kept.LEARNED.read(folder), kept.PLAYED.read(folder), runs, tuning)
