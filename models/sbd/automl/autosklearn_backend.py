"""Search with auto-sklearn in its own environment and process, by exchange of arrays and JSON.

Feurer et al., Efficient and Robust Automated Machine Learning, NeurIPS 2015; the AUTO of
SmartSBD (section 3.4).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.place import scratch
from models.sbd.automl import environment, rebuilt
from models.sbd.automl.task import Floats, Ints, Member, Progress, Result, Task, Trial, ticking

LEAST_S = 30
"""Shortest budget in seconds; auto-sklearn refuses to search for less."""
GRACE_S = 900
"""Seconds given after the search: up to fifty pipelines are fitted on all rows, without a limit."""
MEMORY_MB = 3072
"""Memory of one pipeline in MB, which is auto-sklearn's default."""
ROUNDING = 1e-6
SCRIPT = environment.ISOLATED / "search.py"


def check() -> None:
    """Check that the environment is built; else a `UserError` names the command that builds it."""
    environment.built_interpreter()


def search(task: Task, progress: Progress, python: Path | None = None) -> Result:
    """Search with auto-sklearn; the result is its ensemble.

    Parameters
    ----------
    task : Task
        What is to be learned; budgets below 30 s are taken as 30 s, which ``about`` then states.
    progress : callable
        Shows how many seconds of the budget have gone.
    python : Path, optional
        Another interpreter than that of ``.automl``.

    Raises
    ------
    UserError
        When it isn't installed, or fails; the message then has the last line of its output.
    """
    interpreter = python or environment.built_interpreter()
    begun = time.monotonic()
    spent = _children_cpu_s()
    with scratch("automl") as folder:
        _write(task, folder)
        with ticking(progress, "auto-sklearn", max(task.seconds, LEAST_S)):
            _run([str(interpreter), str(SCRIPT), str(folder)], folder, task.seconds)
        answer = _answer(folder)
        probability = _probabilities(folder, "probability", task)
        listed = sorted(enumerate(answer["members"]), key=lambda item: -item[1]["weight"])
        members = tuple(_member(folder, k, one, task) for k, one in listed)
    about = dict(answer["about"])
    if task.seconds < LEAST_S:
        about["seconds"] = LEAST_S
    return Result(
        backend="auto-sklearn",
        version=str(about.pop("auto-sklearn", "")),
        probability=probability,
        members=members,
        trials=tuple(Trial(**one) for one in answer["trials"]),
        wall_s=time.monotonic() - begun,
        cpu_s=_children_cpu_s() - spent,
        about=about,
    )


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def validation(y: Ints, group: Ints, seed: int) -> Ints:
    """Choose a third of each class's connections for validation.

    Returns
    -------
    int64 array [N]
        0 for a row that validates, -1 for one that is learned from.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    folds = StratifiedGroupKFold(n_splits=3, shuffle=True, random_state=seed)
    _, held = next(iter(folds.split(np.zeros((len(y), 1)), y, group)))
    fold = np.full(len(y), -1, dtype=np.int64)
    fold[held] = 0
    return fold


def _write(task: Task, folder: Path) -> None:
    arrays = {"x": task.x, "y": task.y, "fold": validation(task.y, task.group, task.seed)}
    arrays |= {f"query-{i}": x for i, x in enumerate(task.queries)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    settings = {
        "seconds": max(task.seconds, LEAST_S),
        "seed": task.seed,
        "jobs": task.jobs,
        "trials": task.trials,
        "queries": len(task.queries),
        "memory_mb": MEMORY_MB,
    }
    (folder / "task.json").write_text(json.dumps(settings), encoding="utf-8")


def _run(command: list[str], folder: Path, seconds: float) -> None:
    """Run a command in a process group of its own, all of which is ended whatever happens."""
    log = folder / "log"
    # Nothing of this project or of the user's may reach the environment.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    clean |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=clean, cwd=folder, start_new_session=True
        )
        try:
            code = process.wait(timeout=2 * max(seconds, LEAST_S) + GRACE_S)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"auto-sklearn has not ended {GRACE_S} s after twice its {seconds:g} s: give it "
                "more --seconds or fewer --jobs"
            ) from None
        finally:
            _end(process)
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = lines[-1].strip() if lines else f"status {code}, without a word"
        raise UserError(f"auto-sklearn failed: {why}: try more --seconds, or --backend flaml")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(folder: Path) -> Any:
    try:
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"auto-sklearn left no readable result: {error}") from None


def _probabilities(folder: Path, stem: str, task: Task) -> tuple[Floats, ...]:
    found = []
    for i, rows in enumerate(task.queries):
        path = folder / f"{stem}-{i}.npy"
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UserError(f"auto-sklearn left no readable {path.name}: {error}") from None
        if array.shape != (len(rows),):
            raise UserError(f"auto-sklearn answered {array.shape} for {len(rows)} rows")
        found.append(array.astype(np.float64))
    return tuple(found)


def _member(folder: Path, k: int, one: Any, task: Task) -> Member:
    stated = _probabilities(folder, f"member-{k}-probability", task)
    reason, estimator = str(one["reason"]), None
    if one["form"] is not None:
        with np.load(folder / f"member-{k}.npz", allow_pickle=False) as arrays:
            estimator = rebuilt.estimator(one["form"], dict(arrays), task.x.shape[1])
        worst = max(
            (
                float(np.abs(estimator.predict_proba(x)[:, 1] - p).max(initial=0.0))
                for x, p in zip(task.queries, stated, strict=True)
            ),
            default=0.0,
        )
        if not worst <= ROUNDING:
            estimator = None
            reason = f"what was taken out of {one['learner']} answers differently, by {worst:.2g}"
    return Member(
        name=f"{one['run']}-{one['learner'].replace('_', '-')}",
        learner=str(one["learner"]),
        weight=float(one["weight"]),
        loss=one["loss"],
        settings=one["settings"],
        estimator=estimator,
        probability=stated,
        reason=reason,
    )
