"""Searches for a tree by its return alone: nobody's actions are imitated.

An imitated network goes on from what it remembers, and a tree that errs once leads it to where it
never was. The trees that are searched for here have no such memory to lose: of a few nodes, which a
module for each environment knows (`FAMILIES`), all numbers are free. They are searched for by the
cross-entropy method (Rubinstein 1999): draw candidates, play them, and draw the next ones around
the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.distill import steered, thresholds
from models.distill.nodes import Node, classifier
from models.distill.params import STEERED, Distill
from models.distill.rollout import Task, returns
from models.distill.tree import Student
from models.envs.samplers import TRAINING

Floats = NDArray[np.float64]

CANDIDATES, BEST = 14, 5
"""Drawn in a generation, and how many of them the next is drawn around."""
KEPT_SPREAD = 0.5
"""Weight of the spread before, so that a search doesn't end by chance."""
FIRST_SEED = 5000
"""Of the search's episodes; each generation has others."""


class Family(Protocol):
    """What a module of trees of one shape has.

    Attributes
    ----------
    START, SPREAD : float64 array [n]
        First values of its numbers, and how far they may be off.
    """

    START: Floats
    SPREAD: Floats

    def root(self, numbers: Floats, settings: Mapping[str, Any]) -> Node:
        """The tree of these numbers, for an environment with these settings."""
        ...


FAMILIES: dict[str, Family] = {"tcco": steered, "nuwa": thresholds}
"""Environment -> module."""


def searched(task: Task, params: Distill, told: Callable[[int, Student], None]) -> None:
    """Search for as many generations as the settings ask for.

    Parameters
    ----------
    task : Task
    params : Distill
    told : callable
        Is given the number of each generation, from 0, and the tree that it ended with.

    Raises
    ------
    UserError
        When no shape is known for the policy's environment.
    """
    if task.teacher.environment not in FAMILIES:
        raise UserError(
            f"distill.steered: no tree of {task.teacher.name} is searched for by return, only of "
            f"{' and '.join(FAMILIES)}: leave it at 0"
        )
    family = FAMILIES[task.teacher.environment]
    generator = np.random.default_rng(params.seed)
    mean, spread = family.START, family.SPREAD
    for number in range(params.steered):
        drawn = generator.normal(mean, spread, (CANDIDATES, len(mean)))
        drawn[0] = mean
        seed = FIRST_SEED + params.seed + number * params.lanes
        scores = [
            returns(task, student(task, one, number), TRAINING, seed, params.lanes, params.steps)
            for one in drawn
        ]
        best = drawn[np.argsort([-one.mean() for one in scores])[:BEST]]
        mean = best.mean(axis=0)
        spread = KEPT_SPREAD * spread + (1 - KEPT_SPREAD) * best.std(axis=0)
        told(number, student(task, mean, number))


def student(task: Task, numbers: Floats, number: int = 0) -> Student:
    """The tree of an environment's family, by its numbers.

    Parameters
    ----------
    task : Task
    numbers : float64 array [n]
    number : int
        Of the generation.
    """
    names = [feature.name for feature in task.deriver(1).features]
    root = FAMILIES[task.teacher.environment].root(numbers, task.teacher.params)
    return Student(classifier(root, names, task.actions), STEERED, number)
