"""The task that a backend is given, and the result that it returns."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.parallel import Progress, silent

__all__ = ["Member", "Progress", "Result", "Task", "Trial", "silent", "ticking"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FOLDS = 5
"""Folds of the validation inside FLAML's search; auto-sklearn validates on the first of three."""


@dataclass(frozen=True)
class Task:
    """The data to learn from, and the budget of the search.

    Attributes
    ----------
    x : float64 array [N, d]
        Finite.
    y : int64 array [N]
        0 and 1.
    group : int64 array [N]
        The connection of each row: validation never parts one.
    seconds : float
        Wall-clock budget of the search. What follows it (fitting what was found once more on
        all rows) isn't counted.
    queries : tuple of float64 arrays [M, d]
        Rows that the fitted result answers; models of another environment can't be asked later.
    seed : int
    jobs : int
        Number of threads or processes.
    trials : int, optional
        Largest number of configurations to try.
    """

    x: Floats
    y: Ints
    group: Ints
    seconds: float
    queries: tuple[Floats, ...] = ()
    seed: int = 0
    jobs: int = 1
    trials: int | None = None

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise UserError(f"a search of {self.seconds:g} s: give --seconds above 0")
        if self.trials is not None and self.trials < 1:
            raise UserError(f"{self.trials} trials: give --trials 1 or more")
        for label in (0, 1):
            count = int(np.unique(self.group[self.y == label]).size)
            if count < FOLDS:
                raise UserError(
                    f"{count} connections of class {('NSB', 'SB')[label]}: a search validates by "
                    f"connection and needs {FOLDS} of each class"
                )


@dataclass(frozen=True)
class Trial:
    """A configuration that was evaluated.

    Attributes
    ----------
    seconds : float
        Time from the beginning of the search to the end of this evaluation.
    learner : str
        Kind of model, in the backend's words.
    loss : float or None
        1 - accuracy in validation; None if the evaluation failed.
    status : str
        ``ok``, or the reason for which it failed.
    """

    seconds: float
    learner: str
    loss: float | None
    status: str = "ok"


@dataclass(frozen=True)
class Member:
    """A fitted model of the result.

    Attributes
    ----------
    name : str
        Unique within the result.
    learner : str
        Kind of model, in the backend's words.
    weight : float
        Weight in the result's average; 0 for a model that was found but isn't part of it.
    loss : float or None
        1 - accuracy in validation.
    settings : mapping
        Hyperparameters and steps, plain data.
    estimator : object, optional
        Estimator fitted on all rows; ``None`` if there is none that exporters understand.
    probability : tuple of float64 arrays [M]
        P(SB) that the backend's own model gives for each query.
    reason : str
        Reason for which there is no estimator.
    """

    name: str
    learner: str
    weight: float
    loss: float | None
    settings: Mapping[str, Any]
    estimator: Any = None
    probability: tuple[Floats, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Result:
    """The result of a search.

    Attributes
    ----------
    backend, version : str
    probability : tuple of float64 arrays [M]
        P(SB) of each row of each query, by the whole result.
    members : tuple of Member
        Members, the best first; those with a weight make up the result together.
    trials : tuple of Trial
        Evaluations in the order of their ends.
    wall_s, cpu_s : float
        Seconds spent from beginning to end, fitting on all rows included.
    about : mapping
        Settings of the search, as plain data.
    """

    backend: str
    version: str
    probability: tuple[Floats, ...]
    members: tuple[Member, ...]
    trials: tuple[Trial, ...]
    wall_s: float
    cpu_s: float
    about: Mapping[str, Any] = field(default_factory=dict)

    def trajectory(self) -> list[dict[str, Any]]:
        """Every improvement during the search: ``seconds``, ``loss``, ``learner``."""
        best = np.inf
        rows = []
        for trial in self.trials:
            if trial.loss is not None and trial.loss < best:
                best = trial.loss
                rows.append(
                    {"seconds": trial.seconds, "loss": trial.loss, "learner": trial.learner}
                )
        return rows

    def described(self) -> dict[str, Any]:
        """The result as plain data, without models."""
        failed: dict[str, int] = {}
        for trial in self.trials:
            if trial.loss is None:
                failed[trial.status] = failed.get(trial.status, 0) + 1
        return {
            "backend": self.backend,
            "version": self.version,
            "evaluated": len(self.trials),
            "failed": failed,
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "about": dict(self.about),
            "members": [
                {
                    "name": m.name,
                    "learner": m.learner,
                    "weight": m.weight,
                    "loss": m.loss,
                    "settings": dict(m.settings),
                    "reason": m.reason,
                }
                for m in self.members
            ],
            "trajectory": self.trajectory(),
        }


@contextmanager
def ticking(progress: Progress, what: str, seconds: float) -> Iterator[None]:
    """Show a person that a budget of seconds is being spent, while the block runs."""
    done = threading.Event()

    def ticks() -> Iterable[int]:
        for second in range(1, int(seconds) + 1):
            if done.wait(1.0):
                return
            yield second

    def show() -> None:
        for _ in progress(ticks(), what, int(seconds)):
            pass

    display = threading.Thread(target=show, daemon=True)
    display.start()
    try:
        yield
    finally:
        done.set()
        display.join()
