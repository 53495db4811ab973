"""Distil: gather rows, fit trees, and keep what does best when it acts (VIPER; Bastani 2018).

Labels alone don't tell how good a student is: one that agrees with its teacher on 99 % of rows may
drift to where it doesn't. So the iterate, what trees may see and their size are all chosen by the
return of validation episodes in which the student itself acts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from features.derived import Change
from models.distill.by_return import searched
from models.distill.params import STEERED, Distill
from models.distill.rollout import Rows, Task, play, returns
from models.distill.scores import by_scores
from models.distill.tree import Student, fitted
from models.envs.samplers import TRAINING, VALIDATION

Say = Callable[[str], None]
SIZES = (8, 16, 32, 64, 128, 255)
"""Leaves of the trees on the curve."""


@dataclass(frozen=True)
class Tried:
    """A tree and what it got in validation.

    Attributes
    ----------
    student : Student
    returns : float64 array [lanes]
        Of the same episodes for all.
    """

    student: Student
    returns: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())


@dataclass
class Found:
    """What a distillation found.

    Attributes
    ----------
    chosen : Student
    tried : list of Tried
        All that were played in validation, rounds first and then sizes.
    sizes : dict
        Leaves at most -> the tree of that size.
    teacher : float
        The teacher's return in the same episodes.
    seen : int64 array [n, F]
        Some rows that the chosen one was fitted on.
    rows : int
        How many there were.
    whole : Rows
        All of them.
    agreement : float
        Weighted share of them on which it does as its teacher.
    """

    chosen: Student
    tried: list[Tried]
    sizes: dict[int, Student]
    teacher: float
    seen: NDArray[np.int64]
    rows: int
    agreement: float
    whole: Rows
    settings: dict[str, Any] = field(default_factory=dict)


def distil(task: Task, params: Distill, say: Say = lambda text: None) -> Found:
    """Distil a teacher into one tree.

    Parameters
    ----------
    task : Task
    params : Distill
    say : callable, optional
        Told how far it is.
    """
    steps, lanes = params.steps, params.lanes
    teacher = returns(task, None, VALIDATION, params.seed, lanes, steps)
    say(f"teacher: {teacher.mean():.4f} in validation")
    parts: list[Rows] = []
    tried: list[Tried] = []
    fits: list[tuple[Tried, Rows]] = []
    acting: Student | None = None
    for number in range(params.rounds):
        _, rows = play(task, acting, TRAINING, params.seed + number, lanes, steps)
        parts = [*parts, rows] if params.pool else [rows]
        whole = _together(parts)
        for view in params.views:
            student = _fit(task, params, whole, view, number, params.leaves)
            tried.append(_tried(task, params, student))
            fits.append((tried[-1], whole))
            say(f"round {number + 1}, sees {view}: {tried[-1].mean:.4f}, {student.leaves} leaves")
        acting = max(tried[-len(params.views) :], key=lambda one: one.mean).student

    def told(number: int, student: Student) -> None:
        tried.append(_tried(task, params, student))
        fits.append((tried[-1], whole))
        say(f"generation {number + 1}: {tried[-1].mean:.4f}, {student.leaves} leaves")

    if params.steered:
        searched(task, params, told)
    allowed = [one for one in fits if one[0].student.leaves <= params.leaves]
    best, whole = max(allowed, key=lambda one: one[0].mean)
    sizes: dict[int, Student] = {}
    smaller: list[Tried] = []
    # A tree that was searched for is as large as it is: rows have the teacher's actions.
    refitted = () if best.student.view == STEERED else SIZES
    for leaves in (size for size in refitted if size <= params.leaves):
        view, number = best.student.view, best.student.round
        student = _fit(task, params, whole, view, number, leaves)
        sizes[leaves] = student
        # Grown leaf by leaf from the same rows, trees with as many leaves are the same tree.
        known = next((t for t in [best, *smaller] if t.student.leaves == student.leaves), None)
        smaller.append(_tried(task, params, student) if known is None else known)
        say(f"{student.leaves} leaves: {smaller[-1].mean:.4f}")
    top = max([*smaller, best], key=lambda one: one.mean).mean
    enough = [one for one in [*smaller, best] if one.mean >= top - params.tolerance * abs(top)]
    chosen = min(enough, key=lambda one: one.student.leaves).student
    weights = weights_of(whole, params.weights)
    right = chosen.act(whole.seen) == whole.scores.argmax(axis=1)
    agreement = float(np.average(right, weights=weights))
    kept = np.unique(np.linspace(0, len(whole.seen) - 1, 4096).astype(np.int64))
    return Found(
        chosen, [*tried, *smaller], sizes, float(teacher.mean()), whole.seen[kept],
        len(whole.seen), agreement, whole, params.model_dump(mode="json"),
    )  # fmt: skip


def _fit(task: Task, params: Distill, rows: Rows, view: str, number: int, leaves: int) -> Student:
    shown = columns(task, view)
    bounds: dict[str, int] = {
        "depth": params.depth, "leaves": leaves, "least": params.least, "actions": task.actions,
        "seed": params.seed,
    }  # fmt: skip
    if params.goal == "scores":
        estimator = by_scores(rows.seen, rows.scores, None, shown, **bounds)
    else:
        weights = weights_of(rows, params.weights)
        estimator = fitted(rows.seen, rows.scores.argmax(axis=1), weights, shown, **bounds)
    return Student(estimator, view, number)


def columns(task: Task, view: str) -> NDArray[np.int64]:
    """Columns that a view shows: ``all`` or, of the ``present``, none that are changes."""
    entries = task.deriver(1).entries
    shown = [i for i, one in enumerate(entries) if view == "all" or not isinstance(one, Change)]
    return np.array(shown, np.int64)


def weights_of(rows: Rows, how: str) -> NDArray[np.float64]:
    """By how much a wrong action may cost, with a mean of 1 (Bastani 2018, eq. 2).

    Parameters
    ----------
    rows : Rows
    how : str
        ``gap``, or ``none`` for all alike.
    """
    if how == "none":
        return np.ones(len(rows.seen))
    gap = rows.scores.max(axis=1) - rows.scores.min(axis=1)
    weights: NDArray[np.float64] = gap / max(float(gap.mean()), 1e-12)
    return weights


def _tried(task: Task, params: Distill, student: Student) -> Tried:
    seed, lanes, steps = params.seed, params.lanes, params.steps
    return Tried(student, returns(task, student, VALIDATION, seed, lanes, steps))


def _together(parts: list[Rows]) -> Rows:
    seen = np.concatenate([part.seen for part in parts])
    return Rows(seen, np.concatenate([part.scores for part in parts]))
