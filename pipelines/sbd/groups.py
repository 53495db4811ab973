"""``cczoo train sbd groups``: train a model for each group of users that it serves better."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.files import write_text
from data.place import everything
from data.results import plain
from features.sbd import features_of
from models import parallel, store
from models.sbd.groups import own
from models.sbd.groups import rows as groups_rows
from models.sbd.groups.rows import Gathered
from models.sbd.results.groups import GROUPS, KEPT, GroupRow, PooledRow
from models.sbd.rows import tell
from models.sbd.train import model_specs, ranking
from models.sbd.train.classifiers import SHORT
from models.sbd.train.job import Job
from models.sbd.usable import Dropped
from models.sbd.windows import Windows
from pipelines.output import print_json, progress
from pipelines.registry.entries import group_model
from pipelines.sbd import groups_task
from pipelines.sbd.groups_task import Group, Outcome, Pooled, Setup

RANKED = 5000
"""Number of windows on which features are ranked, for which the estimator takes seconds."""


def run(args: argparse.Namespace, job: Job) -> int:
    """Train every group and the pooled model; returns 1 if a group failed.

    Parameters
    ----------
    args : Namespace
        Arguments of ``cczoo train sbd groups``: ``by``, ``model``, ``family``, ``params``,
        ``json``, and those of the registration.
    job : Job
        The training: its features, results and settings. If there are no columns to group by,
        groups of path conditions are found in its events.
    """
    from pipelines.reporting.sbd import groups as page
    from pipelines.sbd import register as registration

    job = replace(job, zoo=job.out / "zoo")
    features = _candidates(args.family, SHORT.get(args.model, args.model))
    columns, added = _grouping(args.by, job)
    rows = job.out / ".rows.arrow"
    gathered = groups_rows.gather(
        job.features, columns, features, job.params.groups.pooled_windows, rows, added
    )
    try:
        result = GROUPS.write(job.out, _train(args, job, columns, added, gathered))
    finally:
        parallel.stop()
        rows.unlink(missing_ok=True)
    tell(Dropped(**result.dropped.model_dump()), str(job.features))
    write_text(job.out / "groups.svg", page.draw(result))
    summary = plain(result)
    if not args.no_register:
        registered = registration.from_groups(job, result, args.params, args.offline)
        summary["registered"] = {"run": registered["run"], "versions": len(registered["versions"])}
    if args.json:
        print_json(summary)
    else:
        page.show(result)
    failed = [row for row in result.groups if row.decision == "failed"]
    for row in failed:
        print(f"failed: {row.group}: {row.reason}", file=sys.stderr)
    return 1 if failed else 0


def _grouping(by: str | None, job: Job) -> tuple[list[str], dict[str, Mapping[str, str]]]:
    """Columns to group by, and the values of those that the table doesn't have."""
    if by is not None:
        return [name.strip() for name in by.split(",")], {}
    from pipelines.sbd import conditions

    assert job.events is not None, "the command line asks for one of both"
    settings = job.params.conditions
    found = conditions.grouping(job.events, job.out / "conditions", settings, job.params.seed)
    return [conditions.COLUMN], {conditions.COLUMN: found}


def _candidates(family: str, classifier: str) -> list[str]:
    """Features from which a choice is made."""
    names = [feature.name for feature in features_of(family)]
    if classifier != "threshold":
        return names
    if model_specs.CORRELATION not in names:
        raise UserError(
            f"--model threshold: works on {model_specs.CORRELATION} alone: "
            "give --family smartsbd-plus"
        )
    return [model_specs.CORRELATION]


def _train(
    args: argparse.Namespace,
    job: Job,
    columns: Sequence[str],
    added: Mapping[str, Mapping[str, str]],
    gathered: Gathered,
) -> dict[str, Any]:
    classifier = SHORT.get(args.model, args.model)
    short = {whole: short for short, whole in SHORT.items()}
    name = f"{args.family}-{short.get(classifier, classifier)}"
    setup = Setup(
        name=name,
        family=args.family,
        plan=own.Plan(
            classifier=classifier,
            features=(),
            grid=own.grid(classifier, job.params),
            groups=job.params.groups,
            seed=job.params.seed,
            confidence=job.params.confidence,
            resamples=job.params.bootstrap,
        ),
        params=job.params,
        data_hash=groups_rows.table_hash(job.features),
        command=shlex.join(["cczoo", *sys.argv[1:]]),
        settings=job.settings,
    )
    setup, sample = _with_features(setup, _candidates(args.family, classifier), gathered, job)
    key = _key(setup, columns, added)
    registered = {group: group_model(name, group) for group in gathered.counts}
    kept = {
        group: row
        for group in gathered.counts
        if isinstance(row := _kept(job, registered[group], key), GroupRow)
    }
    todo = [group for group in gathered.largest_first() if group not in kept]
    pooled_row = _kept(job, name, key)
    if todo or pooled_row is None:
        pooled, settings = _pooled(setup, sample, job)
        if pooled_row is None:
            pooled_row = _keep(job, groups_task.pooled_entry(pooled, sample, settings), key)
        kept |= _groups(pooled, gathered, todo, registered, job, key)
    _tidy(job, name, kept.values())
    order = sorted(kept)
    decisions = [kept[group].decision for group in order]
    return {
        "model": name,
        "classifier": classifier,
        "family": args.family,
        "columns": list(columns),
        "features": list(setup.plan.features),
        "data_hash": setup.data_hash,
        "confidence": job.params.confidence,
        "pooled": pooled_row,
        "rows": gathered.rows,
        "rows_without_group": gathered.without,
        "dropped": _dropped(kept.values()).described(),
        "counts": {d: decisions.count(d) for d in ("own", "pooled", "failed")},
        "resumed": len(kept) - len(todo),
        "groups": [kept[group] for group in order],
    }


def _dropped(rows: Iterable[GroupRow]) -> Dropped:
    """Count the rows left out by all groups together, except those that failed."""
    total = Dropped()
    for row in rows:
        if row.dropped is not None:
            total.add(Dropped(**row.dropped.model_dump()))
    return total


def _with_features(
    setup: Setup, names: list[str], gathered: Gathered, job: Job
) -> tuple[Setup, Windows]:
    """The plan with the most informative features, and the pooled model's rows.

    Features are ranked over all groups, once, and the same for all models.
    """
    whole = _replanned(setup, tuple(names))
    sample, _ = groups_task.usable(gathered.sample, whole)
    table = groups_task.learned(sample, whole)
    if np.unique(table.y).size < 2:
        raise UserError(
            f"{job.features}: both SB and NSB windows are needed to train, of {gathered.rows} rows "
            f"{len(table)} are labelled, finite and outside the fixed test set"
        )
    at = np.unique(np.linspace(0, len(table) - 1, RANKED).astype(np.int64))
    x, near = table.matrix(names)[at], job.params.selection.neighbours
    ranked = ranking.ranking(x, table.y[at], names, 1, near, job.params.seed)
    return _replanned(setup, ranking.subsets(ranked, job.params.protocol.top_k)[-1]), sample


def _replanned(setup: Setup, features: tuple[str, ...]) -> Setup:
    return replace(setup, plan=replace(setup.plan, features=features))


def _key(setup: Setup, columns: Sequence[str], added: Mapping[str, Mapping[str, str]]) -> str:
    """Hash of everything that a group's result depends on."""
    content = {
        "data": setup.data_hash,
        "name": setup.name,
        "columns": list(columns),
        "added": {name: sorted(mapping.items()) for name, mapping in added.items()},
        "plan": {**asdict(setup.plan), "groups": setup.plan.groups.model_dump()},
        "protocol": setup.params.protocol.model_dump(mode="json"),
        "plus": setup.params.plus.model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _pooled(setup: Setup, sample: Windows, job: Job) -> tuple[Pooled, dict[str, Any]]:
    """Fit the pooled models: one per fold left out, and one on all rows, with its settings."""
    table = groups_task.learned(sample, setup)
    items = [None, *setup.plan.rounds]
    made = parallel.spread(
        groups_task.fit_pooled, items, (setup, table), "pooled model", job.params.workers, progress
    )
    folds = {item: model for item, (model, _) in zip(items, made, strict=True) if item is not None}
    if None in folds.values():
        raise UserError(
            f"{job.features}: too few connections to leave {setup.plan.groups.folds} folds out: "
            "collect more, or lower models.sbd.groups.folds"
        )
    return Pooled(setup, folds, made[0][0]), made[0][1]


def _groups(
    pooled: Pooled,
    gathered: Gathered,
    todo: Sequence[str],
    registered: Mapping[str, str],
    job: Job,
    key: str,
) -> dict[str, GroupRow]:
    """Train the groups that are still to do; the result of each is kept as it comes."""

    def items() -> Iterator[Group]:
        for name, frame in zip(todo, gathered.frames(todo), strict=True):
            yield Group(name, registered[name], gathered.values[name], frame)

    found: dict[str, GroupRow] = {}
    stream = parallel.stream(groups_task.train_group, items(), pooled, job.params.workers)
    for number, outcome in progress(stream, "groups", len(todo)):
        name = todo[number]
        if isinstance(outcome, Exception):
            cause = getattr(outcome, "cause", None) or outcome
            reason = f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
            found[name] = GroupRow(
                group=name,
                values=gathered.values[name],
                registered=registered[name],
                decision="failed",
                reason=reason,
            )
        elif isinstance(row := _keep(job, outcome, key), GroupRow):
            found[name] = row
    return found


def _keep(job: Job, outcome: Outcome, key: str) -> GroupRow | PooledRow:
    """Write a result: the model first, then the row that refers to it."""
    name = outcome.row["registered"]
    assert job.zoo is not None
    if outcome.files:
        store.replace_directory(job.zoo / name, outcome.files, everything)
    return KEPT.write_at(_place(job, name), {"key": key, "row": outcome.row}).row


def _place(job: Job, name: str) -> Path:
    return job.out / "results" / f"{name}.json"


def _kept(job: Job, name: str, key: str) -> GroupRow | PooledRow | None:
    """Result of an earlier run with the same data and settings, if it is complete."""
    try:
        found = KEPT.read_at(_place(job, name))
        if found.key != key:
            return None
        if isinstance(found.row, PooledRow) or found.row.decision != "pooled":
            store.load(name, job.zoo)
    except (UserError, ValueError, KeyError):
        return None
    return found.row


def _tidy(job: Job, pooled: str, rows: Iterable[GroupRow]) -> None:
    """Remove results and models of runs with other data or settings."""
    assert job.zoo is not None
    rows = list(rows)
    known = {pooled, *(row.registered for row in rows if row.decision != "failed")}
    models = {pooled, *(row.registered for row in rows if row.decision == "own")}
    for path in (job.out / "results").glob("*.json"):
        if path.name.removesuffix(".json") not in known:
            path.unlink()
    for name in store.names(job.zoo):
        if name not in models:
            shutil.rmtree(job.zoo / name)
