"""Search in the environment of auto-sklearn; input and output are arrays and JSON in a folder.

    python search.py FOLDER

FOLDER holds ``task.json``, ``x.npy``, ``y.npy``, ``fold.npy`` (0 validates, -1 learns) and
``query-<i>.npy``; ``result.json``, ``probability-<i>.npy`` and, for every member,
``member-<k>-probability-<i>.npy`` and perhaps ``member-<k>.npz`` are written beside them.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from members import NoForm, exported  # type: ignore[import-not-found]

METALEARNING_FROM_S = 1200
"""Seconds from which configurations are tried that did well elsewhere: these take long."""
METALEARNED = 25


def main(folder: Path) -> None:
    """Search, answer the queries and describe the members."""
    task = json.loads((folder / "task.json").read_text())
    x, y, fold = (
        np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("x", "y", "fold")
    )
    queries = [
        np.load(folder / f"query-{i}.npy", allow_pickle=False) for i in range(task["queries"])
    ]
    automl = fitted(task, x, y, fold, folder)
    for i, rows in enumerate(queries):
        np.save(folder / f"probability-{i}.npy", positive(automl, rows))
    result = {
        "trials": trials(automl),
        "members": members(automl, x, queries, folder),
        "about": {
            "validation": "a third of the connections, then fitted on all rows",
            "metalearned": METALEARNED if task["seconds"] >= METALEARNING_FROM_S else 0,
            "seconds_per_trial": per_trial(task["seconds"]),
            "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
            **versions(),
        },
    }
    part = folder / "result.json.part"
    part.write_text(json.dumps(result))
    os.replace(part, folder / "result.json")


def read(path: Path) -> np.ndarray:
    """Read an array, never a pickle."""
    return np.asarray(np.load(path, allow_pickle=False))


def per_trial(seconds: float) -> int:
    """Seconds that one pipeline may take."""
    return max(10, int(seconds / 10))


def fitted(task: Any, x: np.ndarray, y: np.ndarray, fold: np.ndarray, folder: Path) -> Any:
    """Search, and fit every pipeline of the ensemble once more on all rows."""
    from autosklearn.classification import AutoSklearnClassifier
    from autosklearn.metrics import accuracy
    from sklearn.model_selection import PredefinedSplit

    seconds = task["seconds"]
    scenario = {} if task["trials"] is None else {"runcount_limit": task["trials"]}
    automl = AutoSklearnClassifier(
        time_left_for_this_task=max(30, int(seconds)),
        per_run_time_limit=per_trial(seconds),
        initial_configurations_via_metalearning=(
            METALEARNED if seconds >= METALEARNING_FROM_S else 0
        ),
        seed=task["seed"],
        n_jobs=task["jobs"],
        memory_limit=task["memory_mb"],
        metric=accuracy,
        resampling_strategy=PredefinedSplit(fold),
        tmp_folder=str(folder / "autosklearn"),
        smac_scenario_args=scenario,
    )
    automl.fit(x, y)
    # Pipelines were fitted on part of the rows only.
    automl.refit(x, y)
    return automl


def positive(model: Any, rows: np.ndarray) -> np.ndarray:
    """P(class 1), also of a stand-in that has seen nothing."""
    return np.asarray(model.predict_proba(rows), dtype=np.float64)[:, -1]


def trials(automl: Any) -> list[dict[str, Any]]:
    """Configurations that were evaluated, in the order of their ends."""
    history = automl.automl_.runhistory_
    begun = min([value.starttime for value in history.data.values()] or [0.0])
    rows = []
    for key, value in history.data.items():
        settings = history.ids_config[key.config_id].get_dictionary()
        status = value.status.name
        rows.append(
            {
                "seconds": value.endtime - begun,
                "learner": settings["classifier:__choice__"],
                "loss": float(value.cost) if status == "SUCCESS" else None,
                "status": "ok" if status == "SUCCESS" else status.lower(),
            }
        )
    return sorted(rows, key=lambda row: row["seconds"])


def members(
    automl: Any, x: np.ndarray, queries: list[np.ndarray], folder: Path
) -> list[dict[str, Any]]:
    """Describe the ensemble's members; their answers and arrays are written as files."""
    inner = automl.automl_
    weights = dict(zip(inner.ensemble_.identifiers_, inner.ensemble_.weights_))  # noqa: B905
    costs = {}
    for value in inner.runhistory_.data.values():
        number = (value.additional_info or {}).get("num_run")
        if number is not None:
            costs[number] = float(value.cost)
    found: list[dict[str, Any]] = []
    for identifier, pipeline in inner.models_.items():
        weight = float(weights.get(identifier, 0.0))
        if weight <= 0:
            continue
        k = len(found)
        for i, rows in enumerate(queries):
            np.save(folder / f"member-{k}-probability-{i}.npy", positive(pipeline, rows))
        one = {
            "run": identifier[1],
            "weight": weight,
            "loss": costs.get(identifier[1]),
            "learner": type(pipeline).__name__,
            "settings": {},
            "form": None,
            "reason": "",
        }
        if hasattr(pipeline, "config"):
            settings = {k: plain(v) for k, v in pipeline.config.get_dictionary().items()}
            one["settings"] = settings
            one["learner"] = settings["classifier:__choice__"]
        try:
            one["form"] = exported(pipeline, x, folder / f"member-{k}.npz")
        except NoForm as why:
            one["reason"] = str(why)
        found.append(one)
    return found


def plain(value: Any) -> Any:
    """Turn a number of numpy into one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def versions() -> dict[str, str]:
    """Versions of the packages that have searched."""
    import autosklearn
    import sklearn

    return {"auto-sklearn": autosklearn.__version__, "scikit-learn": sklearn.__version__}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main(Path(sys.argv[1]))
