"""What logged decisions cover: how many there are in each region, of whom, and of which action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.decisions.run import Run
from models.offline import regions
from models.offline.questions import Question
from models.offline.regions import AXES, REGIONS, SHAPE

TABLES = (*((i,) for i in range(len(AXES))), (0, 1))
"""Axes that a report has a table of: each by itself, and windows by base RTTs."""
LEAST = 100
"""Decisions of a region, or of an action in a region, that are enough to learn from (ours)."""


@dataclass
class Support:
    """Counts of decisions by region.

    Attributes
    ----------
    actions : int64 array [R, C]
        Decisions of each action in each region.
    runs : int64 array [R]
        Runs with a decision there.
    behaviours : dict
        Control that decided -> int64 array [R], its decisions.
    questions : dict
        Question -> decisions that it holds of, and runs that have one.
    """

    actions: NDArray[np.int64]
    runs: NDArray[np.int64] = field(default_factory=lambda: np.zeros(REGIONS, np.int64))
    behaviours: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    questions: dict[Question, list[int]] = field(default_factory=dict)
    met: dict[tuple[int, ...], NDArray[np.int64]] = field(default_factory=dict)
    """Numbers of axes in `TABLES` -> runs that have a decision in each of their ranges."""
    total_runs: int = 0

    @classmethod
    def of(cls, runs: Iterable[Run], actions: int, questions: Iterable[Question] = ()) -> Support:
        """Count, one run after another.

        Parameters
        ----------
        runs : iterable of Run
        actions : int
            How many there are to choose from.
        questions : iterable of Question, optional
        """
        found = cls(np.zeros((REGIONS, actions), np.int64))
        found.questions = {one: [0, 0] for one in questions}
        for run in runs:
            found.add(run)
        return found

    def add(self, run: Run) -> None:
        """Count a run's decisions."""
        places, count = regions.places(run.observation), self.actions.shape[1]
        both = (places * count + run.action).ravel()
        mine = np.bincount(both, minlength=REGIONS * count).reshape(REGIONS, count)
        self.actions += mine
        decisions = mine.sum(axis=1)
        self.runs += decisions > 0
        self.total_runs += 1
        shaped = decisions.reshape(SHAPE)
        for axes in TABLES:
            there = (shaped.sum(axis=_others(axes)) > 0).astype(np.int64)
            self.met[axes] = self.met.get(axes, 0) + there
        empty = np.zeros(REGIONS, np.int64)
        self.behaviours.setdefault(run.behaviour, empty)[:] += decisions
        for question, counts in self.questions.items():
            held = int(question.holds(run).sum())
            counts[0] += held
            counts[1] += held > 0

    @property
    def decisions(self) -> NDArray[np.int64]:
        """Decisions of each region, int64 array [R]."""
        found: NDArray[np.int64] = self.actions.sum(axis=1)
        return found

    def table(self, axes: tuple[int, ...]) -> list[dict[str, Any]]:
        """A row for each range of one axis, or for each pair of ranges of two, of `TABLES`."""
        others = _others(axes)
        by_action = self.actions.reshape(*SHAPE, -1).sum(axis=others)
        whose = {
            name: counts.reshape(SHAPE).sum(axis=others) for name, counts in self.behaviours.items()
        }
        rows = []
        for at in np.ndindex(*by_action.shape[:-1]):
            words = [AXES[i].words(*AXES[i].range(bin_)) for i, bin_ in zip(axes, at, strict=True)]
            mine = by_action[at]
            rows.append({
                "region": " ".join(words),
                "decisions": int(mine.sum()),
                "runs": int(self.met[axes][at]) if axes in self.met else 0,
                "actions": [int(count) for count in mine],
                "behaviours": {name: int(n[at]) for name, n in whose.items() if n[at]},
            })  # fmt: skip
        return rows

    def regions(self) -> list[dict[str, Any]]:
        """A row for each region that has a decision, those with the most first."""
        decisions = self.decisions
        found = sorted(np.flatnonzero(decisions), key=lambda at: -int(decisions[at]))
        return [
            {
                "region": regions.named(int(at)),
                "decisions": int(decisions[at]),
                "runs": int(self.runs[at]),
                "actions": [int(count) for count in self.actions[at]],
                "behaviours": {n: int(c[at]) for n, c in self.behaviours.items() if c[at]},
            }
            for at in found
        ]

    def gaps(self) -> list[str]:
        """Ranges of `TABLES` without any decision, in words; of two axes, what isn't of one."""
        found: list[str] = []
        empty: set[tuple[int, int]] = set()
        for axes in TABLES:
            for at in zip(*np.nonzero(self.met[axes] == 0), strict=True):
                ranges = list(zip(axes, (int(bin_) for bin_ in at), strict=True))
                if not empty & set(ranges):
                    words = [AXES[i].words(*AXES[i].range(bin_)) for i, bin_ in ranges]
                    found.append(" ".join(words))
                if len(axes) == 1:
                    empty |= set(ranges)
        return found

    def lack(self, question: Question, least: int) -> str | None:
        """Why a question can't be answered from these logs, in a sentence; None if it can."""
        decisions, runs = self.questions[question]
        return _lacking(question.words(), decisions, runs, least)


def _others(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in range(len(AXES)) if i not in axes)


def _lacking(words: str, decisions: int, runs: int, least: int) -> str | None:
    if not decisions:
        return f"the logs hold no decision {words}"
    if decisions < least:
        return (
            f"the logs hold only {decisions} decisions (of {runs} "
            f"run{'s' if runs > 1 else ''}) {words}: a conclusion takes {least}"
        )
    return None
