"""Write the members of an AutoML search that exporters understand as entries."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.files import file_hash
from export.entry import describe_fitted
from features.spec import Feature
from models.card import Card, interval, render
from models.origin import Origin
from models.sbd.automl.task import Member, Result
from models.sbd.computed_with import described
from models.sbd.evaluate import testset
from models.sbd.train.job import Job
from models.sbd.windows import Windows
from models.store import replace_directory

if TYPE_CHECKING:
    from pipelines.sbd.automl_plan import Plan


def keep(
    job: Job,
    plan: Plan,
    features: Sequence[Feature],
    train: Windows,
    result: Result,
    report: dict[str, Any],
) -> None:
    """Write every member that exporters understand; the best of them also as ``model``."""
    base = f"{plan.family}-auto"
    rows: list[dict[str, Any]] = report["members"]
    kept: dict[str, dict[str, bytes]] = {}
    for row, member in zip(rows, result.members, strict=True):
        row["entry"], row["form"], row["why"] = None, None, member.reason
        if member.estimator is None:
            continue
        try:
            files = _entry(f"{base}-{member.name}", job, plan, features, train, member, row)
        except UserError as error:
            row["why"] = str(error)
            continue
        meta = json.loads(files["meta.json"])
        kept[member.name] = files
        row["entry"] = f"members/{member.name}"
        row["form"] = meta["kind"] if "model.json" in files else None
        row["why"] = meta["no_form"]
    report["model"] = None
    for name, files in kept.items():
        replace_directory((job.out / "members" / name).resolve(), files)
    ranked = sorted(
        (m for m in result.members if m.name in kept),
        key=lambda m: (m.loss is None, m.loss, -m.weight),
    )
    if ranked:
        best = ranked[0]
        row = next(one for one in rows if one["name"] == best.name)
        files = _entry(base, job, plan, features, train, best, row)
        replace_directory((job.out / "model").resolve(), files)
        report["model"] = {"member": best.name, "entry": "model", "form": row["form"]}


def _entry(
    name: str,
    job: Job,
    plan: Plan,
    features: Sequence[Feature],
    train: Windows,
    member: Member,
    row: Mapping[str, Any],
) -> dict[str, bytes]:
    names = [feature.name for feature in features]
    text = render(
        Card(
            title=name,
            summary=f"{member.learner}, found by {plan.backend} in a search of {plan.seconds:g} s.",
            facts={
                **{
                    f"Accuracy per window, {test}": interval(found)
                    for test, found in row["accuracy"].items()
                },
                "Features": ", ".join(names),
                "Computed with": described(job.settings),
            },
            settings=dict(sorted(member.settings.items())),
            listed=True,
        )
    )
    command = shlex.join(["cczoo", *sys.argv[1:]])
    origin = Origin(plan.family, command, job.settings, file_hash(job.features))
    # The directory is put in its place whole, by the caller.
    return describe_fitted(
        name,
        member.estimator,
        features,
        origin.meta(),
        train.matrix(names),
        {"accuracy": row["accuracy"], "loss": member.loss, "headline": {}},
        text,
        labels=train.y,
        test=testset.sample(testset.fixed(job.table, job.params.protocol)),
    ).contents()
