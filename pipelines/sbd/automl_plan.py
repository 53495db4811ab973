"""What an AutoML search is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from features.sbd import features_of
from features.spec import Feature
from models.sbd import automl
from models.sbd.automl.task import Floats, Task
from models.sbd.train.job import Job
from models.sbd.windows import Windows
from pipelines.output import progress


@dataclass(frozen=True)
class Plan:
    """What is searched, and with how much.

    Attributes
    ----------
    backend : str
    family : str
        Family of features; the search has all of them.
    seconds : float
        Wall-clock budget of one search.
    trials : int, optional
        At most so many configurations.
    """

    backend: str
    family: str
    seconds: float
    trials: int | None

    @property
    def features(self) -> list[Feature]:
        """Columns of the search."""
        return list(features_of(self.family))


def plan_of(args: argparse.Namespace) -> Plan:
    """What the command line asks for.

    Raises
    ------
    UserError
        Where the backend isn't installed.
    """
    automl.check(args.backend)
    return Plan(args.backend, args.family, args.seconds, args.trials)


def task_of(
    table: Windows, rows: Floats, tests: Sequence[Floats], plan: Plan, job: Job, seed: int
) -> Task:
    """A search on ``rows`` [N, d], whose labels and connections are the table's."""
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


def show_progress(items: Any, what: str, total: int) -> Any:
    """How far a search is, for a person."""
    return progress(items, what, total)
