"""Play a teacher or its student in the teacher's environments, and keep what both would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from features.derived import Deriver
from models.distill.others import Acting
from models.envs.samplers import HELD_OUT, TRAINING, VALIDATION
from models.one_thread import one_thread
from models.policies.decisions import environment, whole_values
from models.policies.observed import observed
from models.policies.policy import Policy
from models.rl.layout import Layout
from models.rl.policy import Greedy

FIRST_SEED = {TRAINING: 1, VALIDATION: 100_001, HELD_OUT: 200_001}
"""Part -> seed of its first episodes: no two parts share any."""


@dataclass(frozen=True)
class Rows:
    """Rows of parts that were there.

    Attributes
    ----------
    seen : int64 array [n, F]
        What a tree sees.
    scores : float64 array [n, C]
        The teacher's.
    """

    seen: NDArray[np.int64]
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What is distilled.

    Attributes
    ----------
    teacher : Policy
        Of one kind of parts.
    team : Policy
        With what acts for the other kinds; the teacher itself where there are none.
    """

    teacher: Policy
    team: Policy

    @property
    def kind(self) -> int:
        """Kind of the parts that the student is to decide for."""
        return self.teacher.kinds[0]

    @property
    def actions(self) -> int:
        """How many it has to choose among."""
        return self.teacher.layout.action_counts[self.kind]

    def deriver(self, rows: int) -> Deriver:
        """What computes all that a tree sees."""
        environment, kind = self.teacher.environment, self.kind
        return Deriver(environment, kind, observed(environment, kind)[0], rows)


class Actor:
    """A student in a batch.

    Parameters
    ----------
    task : Task
    layout : Layout
    lanes : int
    """

    def __init__(self, task: Task, layout: Layout, lanes: int) -> None:
        self._task, self.own = task, layout.parts_of(task.kind)
        self._deriver = task.deriver(lanes * len(self.own))
        self._shape = (lanes, len(self.own))

    def see(self, batch: Any) -> NDArray[np.int64]:
        """What trees see now, int64 array [N, own, F]; to be called once each interval."""
        values = whole_values(batch, self._task.teacher, self.own)
        started = np.repeat(np.asarray(batch.started, bool), self._shape[1])
        found = self._deriver.update(values.reshape(-1, values.shape[2]), started)
        return found.reshape(*self._shape, -1)


def play(
    task: Task, student: Acting | None, part: int, seed: int, lanes: int, steps: int | None
) -> tuple[NDArray[np.float64], Rows]:
    """Play episodes, with the student or (None) the teacher, and ask the teacher at each step.

    Parameters
    ----------
    task : Task
    student : Acting, optional
    part : int
        Of `models.envs.samplers.SPLITS`.
    seed : int
        Which episodes of it.
    lanes, steps : int
        Episodes, and decisions of each.

    Returns
    -------
    returns : float64 array [lanes]
        Mean reward of a step, a team's together.
    rows : Rows
    """
    return _played(task, student, part, seed, lanes, steps, True)


def returns(
    task: Task, student: Acting | None, part: int, seed: int, lanes: int, steps: int | None
) -> NDArray[np.float64]:
    """As `play`, without asking the teacher where it doesn't act: returns alone."""
    return _played(task, student, part, seed, lanes, steps, False)[0]


def _played(
    task: Task, student: Acting | None, part: int, seed: int, lanes: int, steps: int | None,
    asked: bool,
) -> tuple[NDArray[np.float64], Rows]:  # fmt: skip
    batch = environment(task.team, lanes, part)
    count = min(steps or batch.steps, batch.steps)
    seen, scores, total = [], [], np.zeros(lanes)
    # Nobody has to be asked where the student decides for everybody.
    alone = student is not None and not asked and task.team is task.teacher
    try:
        batch.reset(FIRST_SEED[part] + seed)
        layout = Layout.of(batch)
        with one_thread():
            team = None if alone else Greedy(task.team.module(layout))
            actor = Actor(task, layout, lanes)
            for _ in range(count):
                now = actor.see(batch)
                there = batch.mask[:, actor.own]
                if team is None:
                    actions = np.zeros(batch.mask.shape, np.int64)
                else:
                    actions = team(batch)
                if asked and team is not None:
                    seen.append(now[there])
                    scores.append(team.scores[:, actor.own, : task.actions][there])
                if student is not None:
                    own = student.act(now.reshape(-1, now.shape[2]))
                    actions[:, actor.own] = own.reshape(there.shape)
                batch.step(actions)
                total += batch.rewards.sum(axis=1)
    finally:
        batch.close()
    width = len(task.deriver(1).features)
    found = Rows(
        np.concatenate(seen) if seen else np.zeros((0, width), np.int64),
        np.concatenate(scores) if scores else np.zeros((0, task.actions)),
    )
    return total / count, found
