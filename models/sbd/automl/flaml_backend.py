"""Search with FLAML: a cost-frugal search over gradient boosting, forests and linear models.

Wang et al., FLAML: A Fast and Lightweight AutoML Library, MLSys 2021.
"""

from __future__ import annotations

import importlib
import json
import logging
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.place import scratch
from models.sbd.automl.task import FOLDS, Floats, Member, Progress, Result, Task, Trial, ticking

ROUNDING = 1e-5
"""Largest difference of probabilities that counts as rounding: XGBoost adds in float32."""


def check() -> None:
    """Check nothing: FLAML is installed with the project."""


def search(task: Task, progress: Progress) -> Result:
    """Search with FLAML's own list of learners; the best one alone is the result.

    Its other learners are members without weight: each with the best of its configurations,
    fitted on all rows.
    """
    logging.getLogger("flaml").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        # FLAML has annotations, incomplete ones: it is taken as untyped.
        flaml: Any = importlib.import_module("flaml")
        begun, spent = time.monotonic(), time.process_time()
        automl = flaml.AutoML()
        with scratch("automl") as held:
            log = held / "trials.jsonl"
            with ticking(progress, "flaml", task.seconds):
                automl.fit(
                    X_train=task.x,
                    y_train=task.y,
                    task="classification",
                    metric="accuracy",
                    time_budget=task.seconds,
                    max_iter=task.trials,
                    eval_method="cv",
                    n_splits=FOLDS,
                    split_type="group",
                    groups=task.group,
                    seed=task.seed,
                    n_jobs=task.jobs,
                    log_file_name=str(log),
                    log_type="all",
                    verbose=0,
                )
            trials = _trials(log)
        if automl.best_estimator is None or automl.model is None:
            raise UserError(
                f"FLAML evaluated nothing within {task.seconds:g} s: give it more --seconds"
            )
        members = [_member(automl, name, task) for name in _ranked(automl)]
    return Result(
        backend="flaml",
        version=flaml.__version__,
        probability=members[0].probability,
        members=tuple(members),
        trials=trials,
        wall_s=time.monotonic() - begun,
        cpu_s=time.process_time() - spent,
        about={
            "validation": f"{FOLDS} folds by connection",
            "learners": list(automl.estimator_list),
        },
    )


def _ranked(automl: Any) -> list[str]:
    """Names of the learners that were evaluated, the best first."""
    losses = automl.best_loss_per_estimator
    found = [name for name, loss in losses.items() if np.isfinite(loss)]
    return sorted(found, key=lambda name: (name != automl.best_estimator, losses[name]))


def _member(automl: Any, name: str, task: Task) -> Member:
    best = name == automl.best_estimator
    wrapped = automl.model if best else automl.best_model_for_estimator(name)
    if wrapped.estimator is None:
        # FLAML fits only the winner on all rows.
        wrapped.fit(task.x, task.y)
    estimator = wrapped.estimator
    stated = tuple(_probability(wrapped, x) for x in task.queries)
    own = tuple(_probability(estimator, x) for x in task.queries)
    reason = ""
    # What a wrapper does to its rows (FLAML's SGD scales each to length 1) isn't in the estimator.
    if any(np.abs(a - b).max(initial=0.0) > ROUNDING for a, b in zip(stated, own, strict=True)):
        reason = f"FLAML transforms the rows before {type(estimator).__name__} sees them"
    return Member(
        name=name,
        learner=type(estimator).__name__,
        weight=1.0 if best else 0.0,
        loss=float(automl.best_loss_per_estimator[name]),
        settings=_plain(automl.best_config_per_estimator[name]),
        estimator=None if reason else estimator,
        probability=stated,
        reason=reason,
    )


def _probability(estimator: Any, x: Floats) -> Floats:
    return np.asarray(estimator.predict_proba(x)[:, 1], dtype=np.float64)


def _plain(settings: Any) -> dict[str, Any]:
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}


def _trials(log: Path) -> tuple[Trial, ...]:
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    rows = [json.loads(line) for line in lines]
    return tuple(
        Trial(
            seconds=float(row["wall_clock_time"]),
            learner=str(row["learner"]),
            loss=float(row["validation_loss"]) if np.isfinite(row["validation_loss"]) else None,
            status="ok" if np.isfinite(row["validation_loss"]) else "failed",
        )
        for row in rows
        if "learner" in row
    )
