"""The neural classifier out of sample: the splits of all others, and the choice of its settings.

A fit takes a minute, so each leaves its answers on disk as soon as it has them: a run that was
killed goes on with the next.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.parallel import Progress, silent, spread
from models.sbd.evaluate.holdout import unseen_rows
from models.sbd.evaluate.splits import Split
from models.sbd.neural.params import VARIANTS, Neural
from models.sbd.params import THRESHOLD, Params
from models.sbd.windows import Windows

NAME = "smartsbd-neural"
SINGLE = ("unseen", "unseen-varied", "transfer")
"""Protocols with one split: repeated with several seeds."""


@dataclass(frozen=True)
class Task:
    """One fit: a split, the settings' name and the seed."""

    split: Split
    variant: str
    settings: Neural
    seed: int

    @property
    def file(self) -> str:
        """Name of the file with its answers."""
        return f"{self.split.protocol}-{self.split.name}-{self.variant}-{self.seed}.parquet"


def validation_rows(group: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """Rows of a random share of the connections, bool array [N], never all and never none."""
    connections = np.unique(group)
    count = min(max(1, round(share * connections.size)), connections.size - 1)
    chosen = np.random.default_rng(seed).permutation(connections)[:count]
    return np.isin(group, chosen)


def protocol_tasks(todo: Sequence[Split], settings: Neural, variant: str) -> list[Task]:
    """One fit per split, several if a protocol has only one; pairs of families are left out."""
    return [
        Task(split, variant, settings, settings.seed + number)
        for split in todo
        if split.protocol != "families"
        for number in range(settings.repeats if split.protocol in SINGLE else 1)
    ]


def selection_splits(table: Windows, params: Params, settings: Neural) -> list[Split]:
    """Splits by which settings are chosen: groups of families, each left out in turn.

    What counts is how a network does under conditions that it wasn't trained on; on connections
    like those that it has seen all variants are near 1. A table without two families leaves a
    share of its connections out. The unseen data set (Table 6) is in none of the splits.
    """
    column = params.protocol.family_column
    family = table.column(column)
    varied = table.column("dataset") == params.protocol.varied
    own = ~unseen_rows(table, params.protocol)
    names = np.unique(family[varied])
    if names.size < settings.validation_folds:
        index = np.flatnonzero(own)
        drawn = validation_rows(table.group[index], settings.validation, params.seed)
        return [Split("choice", "connections", index[~drawn], index[drawn])]
    found = []
    for number in range(settings.validation_folds):
        out = varied & np.isin(family, names[number :: settings.validation_folds])
        train = np.flatnonzero(own & ~out)
        found.append(Split("choice", f"families-{number}", train, np.flatnonzero(out)))
    return found


def selection_tasks(table: Windows, params: Params, settings: Neural) -> list[Task]:
    """Every variant on every split of the choice."""
    return [
        Task(split, name, settings.model_copy(update=dict(change)), settings.seed)
        for name, change in VARIANTS.items()
        for split in selection_splits(table, params, settings)
    ]


def chosen(table: Windows, answers: pl.DataFrame) -> dict[str, Any]:
    """The variant with the best mean accuracy over the splits of the choice.

    Returns
    -------
    dict
        ``chosen`` and ``variants``: per variant ``merit`` and accuracy per split.
    """
    right = (answers["probability"].to_numpy() > THRESHOLD) == (
        table.y[answers["row"].to_numpy()] == 1
    )
    per = (
        answers.with_columns(pl.Series("right", right))
        .group_by("variant", "split", maintain_order=True)
        .agg(pl.col("right").mean())
    )
    variants: dict[str, dict[str, Any]] = {}
    for (name,), part in per.group_by("variant", maintain_order=True):
        by = dict(zip(part["split"].to_list(), part["right"].to_list(), strict=True))
        variants[str(name)] = {"merit": float(np.mean(list(by.values()))), "splits": by}
    return {
        "chosen": max(variants, key=lambda n: float(variants[n]["merit"])),
        "variants": variants,
    }


def run(
    table: Windows,
    rows: NDArray[np.float32],
    tasks: Sequence[Task],
    parts: Path,
    workers: int = 2,
    progress: Progress = silent,
) -> pl.DataFrame:
    """Fit every task that has no answers yet and put all answers together.

    Parameters
    ----------
    table : Windows
        N rows, as the splits number them.
    rows : float32 array [N, d]
        Their series.
    tasks : sequence of Task
    parts : Path
        Directory of the answers; those of other rows or settings aren't taken.
    workers : int
        See `models.parallel.spread`.
    progress : callable

    Returns
    -------
    polars.DataFrame
        ``protocol, split, model, variant, seed, row, probability``.
    """
    parts.mkdir(parents=True, exist_ok=True)
    content = hashlib.sha256(rows.tobytes() + table.y.tobytes()).hexdigest()
    places = [parts / task.file for task in tasks]
    marks = [_mark(task, content) for task in tasks]
    todo = [i for i, path in enumerate(places) if _marked(path) != marks[i]]
    shared = {"x": rows, "y": table.y, "group": table.group, "tasks": list(tasks), "marks": marks}
    shared["parts"] = str(parts.resolve())
    # The long ones first: the last worker shouldn't be left alone with one.
    todo.sort(key=lambda i: -tasks[i].split.train.size)
    if todo:
        spread(_task, todo, shared, "neural", workers, progress)
    return pl.concat([pl.read_parquet(path) for path in places])


def _task(shared: Mapping[str, Any], number: int) -> None:
    from models.sbd.neural import training

    task: Task = shared["tasks"][number]
    train, test = task.split.train, task.split.test
    held = validation_rows(shared["group"][train], task.settings.validation, task.seed)
    found = training.fit(shared["x"][train], shared["y"][train], held, task.settings, task.seed)
    p = training.probability(found.network, shared["x"][test])
    frame = pl.DataFrame({"row": test, "probability": p}).select(
        pl.lit(task.split.protocol).alias("protocol"),
        pl.lit(task.split.name).alias("split"),
        pl.lit(NAME).alias("model"),
        pl.lit(task.variant).alias("variant"),
        pl.lit(task.seed).alias("seed"),
        "row",
        "probability",
    )
    path = Path(shared["parts"]) / task.file
    part = path.with_name(f".{path.name}.{os.getpid()}")
    frame.write_parquet(part, metadata={"cczoo.task": shared["marks"][number]})
    part.replace(path)


def _mark(task: Task, content: str) -> str:
    """Hash of what answers depend on: rows, split, settings, seed."""
    digest = hashlib.sha256(task.split.train.tobytes() + task.split.test.tobytes()).hexdigest()
    told = {"rows": content, "split": digest, "seed": task.seed}
    return json.dumps({**told, **task.settings.model_dump(mode="json")}, sort_keys=True)


def _marked(path: Path) -> str:
    return pl.read_parquet_metadata(path).get("cczoo.task", "") if path.is_file() else ""
