"""Register the models that the trainings of ``cczoo train sbd`` have made."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models import store
from models.sbd.results.kept import HEADLINE
from pipelines.registry.register import is_offline, register, selection, send, tags_of, training

if TYPE_CHECKING:
    from models.sbd.results.groups import Grouped
    from models.sbd.train.job import Job


def from_training(
    job: Job, names: Sequence[str], settings: Path | None, offline: bool
) -> dict[str, Any]:
    """Register the entries that ``cczoo train sbd`` has written."""
    entries = {name: store.load(name, job.zoo).directory for name in names}
    metrics = HEADLINE.read(job.out)
    trained = training("cczoo train sbd all", entries, settings, metrics, job.features)
    return send(replace(trained, reports=job.out), offline)


def from_budget(job: Job, budget: str, settings: Path | None, offline: bool) -> dict[str, Any]:
    """Register the model that a training within a budget has chosen."""
    model = store.load(job.out / "model")
    name, found = model.meta.name, model.read_json("metrics.json")
    metrics = {f"cost.{key}": value for key, value in found["costs"].items()}
    metrics["accuracy"] = found["accuracy"]["mean"]
    run, entries = f"cczoo train sbd budget {budget}", {name: model.directory}
    tags = {name: tags_of(model.directory, {}, budget)}
    return send(training(run, entries, settings, metrics, job.features, tags=tags), offline)


def from_search(job: Job, run: str, settings: Path | None, offline: bool) -> dict[str, Any]:
    """Register the model that an AutoML search has found."""
    model = store.load(job.out / "model")
    tests = model.read_json("metrics.json")["accuracy"]
    metrics = {f"accuracy.{test}": one["mean"] for test, one in tests.items()}
    entries = {model.meta.name: model.directory}
    return send(training(run, entries, settings, metrics, job.features), offline)


def from_groups(job: Job, result: Grouped, settings: Path | None, offline: bool) -> dict[str, Any]:
    """Register the groups' models that were kept, and point the other groups to the pooled one.

    Parameters
    ----------
    job : Job
        The training.
    result : Grouped
        Content of ``groups.json``.
    settings : Path, optional
        The file with the parameters.
    offline : bool
        As in :func:`pipelines.registry.register.register`, whose result is returned.
    """
    pooled, rows = result.model, result.groups
    own = {row.registered: row for row in rows if row.decision == "own"}
    entries = {name: store.load(name, job.zoo).directory for name in (pooled, *own)}
    tags = {name: tags_of(path, {}) for name, path in entries.items()}
    for name, row in own.items():
        tags[name]["group"] = json.dumps(row.values)
    metrics = {f"groups.{decision}": float(n) for decision, n in result.counts}
    run = f"cczoo train sbd groups --by {','.join(result.columns)}"
    trained = replace(
        training(run, entries, settings, metrics, result.data_hash, tags=tags),
        pooled=pooled,
        pointed=tuple(row.registered for row in rows if row.decision == "pooled"),
        selection=selection(job.features),
    )
    made = register(trained, offline=is_offline(offline))
    if made["versions"]:
        print(f"registered {len(made['versions'])} versions as @candidate", file=sys.stderr)
    return made
