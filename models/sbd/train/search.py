"""Grid search over Table 4's spaces and the feature subsets of Fig. 6."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.parallel import Progress, silent, spread
from models.sbd.params import Search
from models.sbd.train.classifiers import CLASSIFIERS, make
from models.sbd.windows import Windows

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


def folds(y: NDArray[np.int64], group: NDArray[np.int64], count: int, seed: int) -> list[Fold]:
    """Stratified folds that never part a connection: ``[(train rows, test rows)]``."""
    from sklearn.model_selection import StratifiedGroupKFold

    splitter = StratifiedGroupKFold(n_splits=count, shuffle=True, random_state=seed)
    return [(a, b) for a, b in splitter.split(np.zeros((y.size, 1)), y, group)]


def thin(table: Windows, per_connection: int, seed: int) -> Windows:
    """At most ``per_connection`` windows of each connection, drawn with ``seed``."""
    order = np.random.default_rng(seed).permutation(len(table))
    mask = np.zeros(len(table), dtype=np.bool_)
    taken: dict[int, int] = {}
    for i in order:
        n = taken.get(int(table.group[i]), 0)
        if n < per_connection:
            mask[i] = True
            taken[int(table.group[i])] = n + 1
    return table.take(mask)


def run(
    table: Windows,
    subsets: Sequence[Sequence[str]],
    params: Search,
    seed: int,
    workers: int = 2,
    progress: Progress = silent,
) -> pl.DataFrame:
    """Mean accuracy of every configuration on every feature subset.

    The two-dimensional grid of the RBF machine is searched in full on the largest subset but one
    (the paper's choice); on the others one hyperparameter is varied at the best value of the
    other, which is what Fig. 6(d) and 6(e) show.

    Parameters
    ----------
    table : Windows
        Labelled rows with finite features.
    subsets : sequence of sequences of str
        Feature names of the top-1, top-2, ... subsets.
    params : Search
        Folds, thinning, sizes.
    seed, workers, progress
        Seed of folds and models; CPUs; what shows the progress (`models.parallel.Progress`).

    Returns
    -------
    polars.DataFrame
        ``model, k, <hyperparameters>, accuracy, sd`` (over folds), one row per configuration.
    """
    table = thin(table, params.windows_per_connection, seed)
    shared = _shared(table, subsets, params, seed)
    sizes = range(1, len(subsets) + 1)
    chosen = max(1, len(subsets) - 1)
    tasks: list[tuple[str, int, list[dict[str, Any]]]] = []
    for name in ("random-forest", "svm-linear", "logistic-regression", "decision-tree"):
        for k in sizes:
            tasks.append((name, k, _grid(name, params)))
    full = _grid("svm-rbf", params)
    tasks = [("svm-rbf", chosen, full[i::6]) for i in range(6)] + tasks
    rows = _flatten(spread(_task, tasks, shared, "grid search", workers, progress))
    top = max((row for row in rows if row["model"] == "svm-rbf"), key=lambda row: row["accuracy"])
    curve = [
        settings
        for settings in full
        if settings["c"] == top["c"] or settings["gamma"] == top["gamma"]
    ]
    more = [("svm-rbf", k, curve[i::2]) for k in reversed(sizes) if k != chosen for i in (0, 1)]
    rows += _flatten(spread(_task, more, shared, "grid search, RBF curves", workers, progress))
    order = ["model", "k", "depth", "c", "gamma", "solver"]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    present = [name for name in order if name in frame.columns]
    return frame.select(*present, "accuracy", "sd").sort(present)


def best(curves: pl.DataFrame, k: int) -> dict[str, dict[str, Any]]:
    """The best configuration of each model on the top-``k`` subset.

    Among configurations within a quarter of the folds' standard deviation of the best one the
    most regularised is taken: accuracies that close are noise.

    Returns
    -------
    dict
        model -> ``{settings: {...}, accuracy, sd}``.
    """
    found: dict[str, dict[str, Any]] = {}
    rows = curves.filter(pl.col("k") == min(k, int(curves["k"].max())))  # type: ignore[arg-type]
    for name in rows["model"].unique().sort():
        space = list(CLASSIFIERS[name].space)
        mine = rows.filter(pl.col("model") == name).sort("accuracy", descending=True)
        first = mine.row(0, named=True)
        near = mine.filter(pl.col("accuracy") >= first["accuracy"] - first["sd"] / 4)
        numbers = [key for key in space if key != "solver"]
        row = near.sort([*numbers, "accuracy"]).row(0, named=True)
        found[name] = {
            "settings": {key: row[key] for key in space},
            "accuracy": row["accuracy"],
            "sd": row["sd"],
        }
    return found


def _grid(name: str, params: Search) -> list[dict[str, Any]]:
    configurations: list[dict[str, Any]] = [{}]
    for key, values in CLASSIFIERS[name].space.items():
        configurations = [{**one, key: value} for one in configurations for value in values]
    if name == "random-forest":
        return [{**one, "trees": params.forest_trees} for one in configurations]
    if name.startswith("svm"):
        return [{**one, "max_iterations": params.max_iterations} for one in configurations]
    return configurations


def _shared(
    table: Windows, subsets: Sequence[Sequence[str]], params: Search, seed: int
) -> dict[str, Any]:
    names = list(subsets[-1])
    return {
        "x": table.matrix(names),
        "columns": [[names.index(name) for name in subset] for subset in subsets],
        "y": table.y,
        "folds": folds(table.y, table.group, params.folds, seed),
        "seed": seed,
    }


def _task(
    shared: Mapping[str, Any], task: tuple[str, int, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    from sklearn.exceptions import ConvergenceWarning

    # A capped solver is part of the search: its accuracy is what counts.
    warnings.simplefilter("ignore", ConvergenceWarning)
    name, k, grid = task
    x = shared["x"][:, shared["columns"][k - 1]]
    y = shared["y"]
    rows = []
    for settings in grid:
        scores = []
        for train, test in shared["folds"]:
            model = make(name, shared["seed"], settings).fit(x[train], y[train])
            scores.append(float((model.predict(x[test]) == y[test]).mean()))
        searched = {key: settings[key] for key in CLASSIFIERS[name].space}
        rows.append(
            {
                "model": name,
                "k": k,
                **searched,
                "accuracy": float(np.mean(scores)),
                "sd": float(np.std(scores, ddof=1)),
            }
        )
    return rows


def _flatten(parts: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for part in parts for row in part]
