"""Entries of an AutoML search: every member that exporters understand, the best as ``model``."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.files import file_hash
from export.entry import write_entry
from features.spec import Feature
from models.sbd import card
from models.sbd.automl.task import Member, Result
from models.sbd.computed_with import described
from models.sbd.evaluate import testset
from models.sbd.windows import Windows
from models.store import replace_directory
from pipelines.sbd.job import Job

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
    figures = {"accuracy": row["accuracy"], "loss": member.loss, "headline": {}}
    lines = [f"- {k}: {v}" for k, v in sorted(member.settings.items())]
    tested = [
        f"- Accuracy per window, {test}: {card.interval(found)}"
        for test, found in row["accuracy"].items()
    ]
    text = "\n".join(
        [
            f"# {name}",
            "",
            f"{member.learner}, found by {plan.backend} in a search of {plan.seconds:g} s.",
            "",
            *tested,
            f"- Features: {', '.join(feature.name for feature in features)}",
            f"- Computed with: {described(job.settings)}",
            "",
            "## Settings",
            "",
            *lines,
            "",
        ]
    )
    meta = {
        "family": plan.family,
        "feature_settings": job.settings,
        "data_hash": file_hash(job.features),
        "created_by": shlex.join(["cczoo", *sys.argv[1:]]),
    }
    job.out.mkdir(parents=True, exist_ok=True)
    # The directory is put in its place whole, by the caller.
    with tempfile.TemporaryDirectory(dir=job.out, prefix=".entry.") as held:
        entry = write_entry(
            name,
            member.estimator,
            features,
            meta,
            train.matrix([feature.name for feature in features]),
            figures,
            text,
            labels=train.y,
            test=testset.sample(testset.fixed(job.table, job.params.protocol)),
            zoo=Path(held),
        )
        return {path.name: path.read_bytes() for path in entry.iterdir()}
