"""The plan of an AutoML search: backend, features and budget."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from features.sbd import features_of
from features.spec import Feature
from models.sbd import automl
from models.sbd.automl.task import Floats, Task
from models.sbd.train.job import Job
from models.sbd.windows import Windows


@dataclass(frozen=True)
class Plan:
    """The backend, the features and the budget of a search.

    Attributes
    ----------
    backend : str
    family : str
        Family of features, all of which the search gets.
    seconds : float
        Wall-clock budget of one search.
    trials : int, optional
        Largest number of configurations to try.
    """

    backend: str
    family: str
    seconds: float
    trials: int | None

    @property
    def features(self) -> list[Feature]:
        """Features that the search gets, in the order of columns."""
        return list(features_of(self.family))


def plan_of(args: argparse.Namespace) -> Plan:
    """Plan that the command line asks for.

    Raises
    ------
    UserError
        When the backend isn't installed.
    """
    automl.check(args.backend)
    return Plan(args.backend, args.family, args.seconds, args.trials)


def task_of(
    table: Windows, rows: Floats, tests: Sequence[Floats], plan: Plan, job: Job, seed: int
) -> Task:
    """A search on ``rows`` (float64 array [N, d]) with the table's labels and connections."""
    return Task(
        x=rows,
        y=table.y,
        group=table.group,
        seconds=plan.seconds,
        queries=tuple(tests),
        seed=seed,
        jobs=max(job.params.workers, 1),
        trials=plan.trials,
    )
