"""``cczoo train sbd auto``: an AutoML search and its accuracy on unseen connections."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.results import plain
from features.spec import Feature
from models.card import interval
from models.sbd import automl
from models.sbd.automl.task import Floats
from models.sbd.evaluate.holdout import held_out_split, unseen_rows
from models.sbd.params import THRESHOLD
from models.sbd.results.automl import SEARCHED, Searched
from models.sbd.train.job import Job
from models.sbd.train.kept import training_rows
from models.sbd.windows import Windows
from models.stats.intervals import by_connection
from pipelines.output import print_json, progress
from pipelines.sbd import automl_entries
from pipelines.sbd.automl_plan import Plan, plan_of, task_of
from pipelines.sbd.train import shared


def run(args: argparse.Namespace) -> int:
    """Search, keep the members that can be exported, and register the best."""
    from pipelines.sbd import register as registration

    plan = plan_of(args)
    job = shared.job_of(args)
    shared.check_registry(args)
    report = learn(job, plan, plan.features)
    summary = plain(report)
    if not args.no_register and report.model:
        run = f"cczoo train sbd auto --backend {plan.backend} --seconds {plan.seconds:g}"
        sent = registration.from_search(job, run, args.params, args.offline)
        summary["registered"] = sent["versions"]
    if args.json:
        print_json(summary)
    else:
        show(report, args.out)
    return 0


def learn(job: Job, plan: Plan, features: Sequence[Feature]) -> Searched:
    """Search on the training connections; write ``automl.json``, ``members/`` and ``model/``."""
    names = [feature.name for feature in features]
    train = training_rows(job)
    tests = tests_of(job)
    asked = [train.matrix(names), *(table.matrix(names) for table in tests.values())]
    result = automl.search(
        plan.backend,
        task_of(train, train.matrix(names), asked, plan, job, job.params.seed),
        progress,
    )
    figures = {
        name: score(table, result.probability[i], job)
        for i, (name, table) in enumerate(tests.items(), start=1)
    }
    report = {
        "family": plan.family,
        "seconds": plan.seconds,
        "seed": job.params.seed,
        "jobs": max(job.params.workers, 1),
        "windows": len(train),
        "connections": int(np.unique(train.group).size),
        "dropped": job.dropped.described(),
        "accuracy": figures,
        **result.described(),
    }
    for row, member in zip(report["members"], result.members, strict=True):
        row["accuracy"] = {
            name: score(table, member.probability[i], job)
            for i, (name, table) in enumerate(tests.items(), start=1)
        }
    automl_entries.keep(job, plan, features, train, result, report)
    return SEARCHED.write(job.out, report)


def tests_of(job: Job) -> dict[str, Windows]:
    """Rows that training doesn't see: held-out connections and, if it is there, Table 6."""
    unseen = job.table.take(unseen_rows(job.table, job.params.protocol))
    found = {"held-out": held_out_split(job.table, job.params.protocol)[1], "unseen": unseen}
    return {name: table for name, table in found.items() if len(table)}


def score(table: Windows, probability: Floats, job: Job) -> dict[str, Any]:
    """Accuracy per window with its interval over connections."""
    right = (probability > THRESHOLD) == (table.y == 1)
    found = by_connection(right, table.group, job.params.confidence, job.params.bootstrap)
    return {**found, "windows": len(table), "connections": int(np.unique(table.group).size)}


def show(report: Searched, out: Path) -> None:
    """Print the result for a person."""
    spent = f"{report.wall_s:.0f} s, {report.cpu_s:.0f} s of CPU"
    print(f"{report.backend} {report.version}: {report.evaluated} configurations, {spent}")
    for test, figures in report.accuracy.items():
        print(f"  {test:<10} {interval(figures)}  ({figures['windows']} windows)")
    print(f"{'weight':>7} {'loss':>7}  member")
    for row in report.members:
        loss = "–" if row.loss is None else f"{row.loss:.4f}"
        form = row.form or ("ONNX only" if row.entry else "not exported")
        why = f": {row.why}" if row.why else ""
        print(f"{row.weight:>7.2f} {loss:>7}  {row.name} ({row.learner}): {form}{why}")
    if report.model is None:
        print("no member can be exported: each says why", file=sys.stderr)
        return
    where = shlex.quote(str(out / "model"))
    print(f"{where}: {report.model.member}")
    print(f"export it with: cczoo export {where} -t onnx --out BUNDLE", file=sys.stderr)
