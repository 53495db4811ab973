"""``cczoo train sbd --model auto``: an AutoML search and its accuracy on unseen connections."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.files import file_hash
from features.spec import Feature
from models.card import interval
from models.sbd import automl
from models.sbd.automl.task import Floats
from models.sbd.evaluate.holdout import sides, unseen_rows
from models.sbd.params import THRESHOLD
from models.sbd.windows import Windows
from models.stats.intervals import by_connection
from pipelines.output import print_json
from pipelines.sbd import automl_entries
from pipelines.sbd.automl_plan import REPORT, Plan, task_of, tell
from pipelines.sbd.fit import training_rows
from pipelines.sbd.job import Job, load_params


def run(args: argparse.Namespace) -> int:
    """Search and keep what was found, or repeat the paper's Table 5 with ``--step protocol``."""
    from pipelines import tracking
    from pipelines.registry import register
    from pipelines.sbd import automl_table5

    given = (
        (args.budget, "--budget"),
        (args.groups, "--groups"),
        (args.events, "--events"),
        (args.zoo, "--zoo"),
    )
    for value, flag in given:
        if value:
            raise UserError(f"{flag} doesn't go with --model auto: leave it out")
    if args.step not in (None, "protocol"):
        raise UserError(f"--step {args.step} isn't one of --model auto: protocol, or none")
    if args.out is None:
        raise UserError("--out is missing: where the result of --model auto goes")
    plan = Plan(args.backend, args.family, args.seconds, args.trials)
    automl.check(plan.backend)
    columns = plan.features
    job = Job(args.features, args.out, load_params(args.params, args.seed))
    if args.step == "protocol":
        return automl_table5.run(job, plan, args.splits, args.json)
    registers = not args.no_register
    if registers and not register.is_offline(args.offline):
        tracking.check_store()
    report = learn(job, plan, columns)
    if registers and report["model"]:
        report["registered"] = _registered(job, plan, args.params, args.offline)
    if args.json:
        print_json(report)
    else:
        show(report, args.out)
    return 0


def _registered(job: Job, plan: Plan, settings: Path | None, offline: bool) -> dict[str, str]:
    """Register ``model/``; name -> version."""
    from models import store
    from pipelines import params
    from pipelines.registry import outbox, register

    entry = store.load(job.out / "model")
    name, found = entry.meta.name, entry.read_json("metrics.json")
    training = outbox.Training(
        experiment=register.EXPERIMENT,
        run=f"cczoo train sbd --model auto --backend {plan.backend} --seconds {plan.seconds:g}",
        params=params.load(settings).model_dump(mode="json"),
        metrics={f"accuracy.{test}": one["mean"] for test, one in found["accuracy"].items()},
        dataset_hash=file_hash(job.features),
        entries={name: entry.directory},
        tags={name: register.tags_of(entry.directory, {})},
    )
    versions: dict[str, str] = register.register(training, offline=register.is_offline(offline))[
        "versions"
    ]
    for registered, version in versions.items():
        print(f"registered {registered} version {version} as @candidate", file=sys.stderr)
    return versions


def learn(job: Job, plan: Plan, features: Sequence[Feature]) -> dict[str, Any]:
    """Search on the training connections; write ``automl.json``, ``members/`` and ``model/``."""
    names = [feature.name for feature in features]
    train = training_rows(job)
    tests = tests_of(job)
    asked = [train.matrix(names), *(table.matrix(names) for table in tests.values())]
    result = automl.search(
        plan.backend,
        task_of(train, train.matrix(names), asked, plan, job, job.params.seed),
        tell,
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
    job.write(REPORT, report)
    return report


def tests_of(job: Job) -> dict[str, Windows]:
    """Rows that training doesn't see: held-out connections, and Table 6 where there is one."""
    unseen = job.table.take(unseen_rows(job.table, job.params.protocol))
    found = {"held-out": sides(job.table, job.params.protocol)[1], "unseen": unseen}
    return {name: table for name, table in found.items() if len(table)}


def score(table: Windows, probability: Floats, job: Job) -> dict[str, Any]:
    """Accuracy per window with its interval over connections."""
    right = (probability > THRESHOLD) == (table.y == 1)
    found = by_connection(right, table.group, job.params.confidence, job.params.bootstrap)
    return {**found, "windows": len(table), "connections": int(np.unique(table.group).size)}


def show(report: Mapping[str, Any], out: Path) -> None:
    """Print the result for a person."""
    spent = f"{report['wall_s']:.0f} s, {report['cpu_s']:.0f} s of CPU"
    print(f"{report['backend']} {report['version']}: {report['evaluated']} configurations, {spent}")
    for test, figures in report["accuracy"].items():
        print(f"  {test:<10} {interval(figures)}  ({figures['windows']} windows)")
    print(f"{'weight':>7} {'loss':>7}  member")
    for row in report["members"]:
        loss = "–" if row["loss"] is None else f"{row['loss']:.4f}"
        form = row["form"] or ("ONNX only" if row["entry"] else "not exported")
        why = f": {row['why']}" if row["why"] else ""
        print(f"{row['weight']:>7.2f} {loss:>7}  {row['name']} ({row['learner']}): {form}{why}")
    if report["model"] is None:
        print("no member can be exported: each says why", file=sys.stderr)
        return
    where = shlex.quote(str(out / "model"))
    print(f"{where}: {report['model']['member']}")
    print(f"export it with: cczoo export {where} -t onnx --out BUNDLE", file=sys.stderr)
