"""Send a training's curve to MLflow while it runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from models.rl.params import Run
from models.rl.training import Progress
from pipelines import tracking

EXPERIMENT = "agents"
EVERY_S = 5.0
"""Seconds from one point that is sent to the next: each is a write to the store."""


@contextmanager
def curves(name: str, params: Run, track: bool) -> Iterator[Callable[[Progress], None]]:
    """One run of MLflow.

    Parameters
    ----------
    name : str
        Agent.
    params : Run
        Logged with the run.
    track : bool
        Otherwise nothing is sent.

    Yields
    ------
    callable
        Takes each `Progress`.
    """
    if not track:
        yield lambda _: None
        return
    # What is learned from comes from the settings alone: they stand for the data.
    digest = hashlib.sha256(params.model_dump_json().encode()).hexdigest()
    settings = params.model_dump(mode="json")
    with (
        tracking.reported(),
        tracking.run(EXPERIMENT, f"{name}-{params.seed}", settings, dataset_hash=digest) as run,
    ):
        last = 0.0

        def log(one: Progress) -> None:
            nonlocal last
            soon = time.monotonic() - last < EVERY_S and one.steps < one.total
            if soon and "validation" not in one.point:
                return
            last = time.monotonic()
            run.log_metrics({**one.point, "steps_per_s": one.steps_per_s}, step=one.steps)

        yield log
