"""Run AutoML on the splits of the paper's Table 5 and compare it with the other classifiers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from data.files import file_hash
from data.results import plain
from models.sbd import automl
from models.sbd.evaluate import splits as protocol
from models.sbd.evaluate import tables
from models.sbd.evaluate.splits import Split
from models.sbd.params import THRESHOLD
from models.sbd.results.automl import AUTO_TABLE5, SPLIT, SplitDone, Table5
from models.sbd.train.job import Job
from models.stats.intervals import Interval, over_splits
from pipelines.output import print_json, progress
from pipelines.sbd.automl_plan import Plan, task_of

PROTOCOL = "within"
PEERS = ("smartsbd-dt", "smartsbd-rf", "smartsbd-svm", "smartsbd-lr")
PREDICTIONS = Path("reports/sbd/predictions.parquet")
PAPER = {"auto-sklearn": 0.957, "smartsbd-svm": 0.937}
"""Accuracies in Table 5 for both classes over all sites."""
BUDGET = ("backend", "family", "seconds", "trials", "seed", "jobs")


def run(job: Job, plan: Plan, splits: int | None, as_json: bool) -> int:
    """Search anew on each split that isn't done, then write ``automl.json`` of all that are."""
    known = protocol.splits(job.table, job.params.protocol, job.params.seed)
    todo = [split for split in known if split.protocol == PROTOCOL]
    if not todo:
        raise UserError(f"{job.features}: none of the sites of Table 5: nothing to split")
    key = _key(job, plan)
    for split in todo[:splits]:
        path = job.out / "splits" / f"{plan.backend}-{plan.family}-{split.name}.json"
        if not _done(path, key):
            SPLIT.write_at(path, {**_searched(job, plan, split), **key})
    report = AUTO_TABLE5.write(job.out, summary(job, todo, PREDICTIONS))
    if as_json:
        print_json(plain(report))
    else:
        show(report)
    return 0


def _key(job: Job, plan: Plan) -> dict[str, Any]:
    """Values that a stored split must agree with to be taken as done."""
    return {
        "backend": plan.backend,
        "family": plan.family,
        "seconds": plan.seconds,
        "trials": plan.trials,
        "seed": job.params.seed,
        "jobs": max(job.params.workers, 1),
        "data_hash": file_hash(job.features),
    }


def _done(path: Path, key: dict[str, Any]) -> bool:
    try:
        found = SPLIT.read_at(path)
    except (OSError, UserError):
        return False
    return all(getattr(found, name) == value for name, value in key.items())


def _searched(job: Job, plan: Plan, split: Split) -> dict[str, Any]:
    names = [feature.name for feature in plan.features]
    matrix = job.table.matrix(names)
    mask = np.zeros(len(job.table), dtype=np.bool_)
    mask[split.train] = True
    seed = job.params.seed + int(split.name)
    load = os.getloadavg()[0]
    task = task_of(job.table.take(mask), matrix[mask], [matrix[split.test]], plan, job, seed)
    found = automl.search(plan.backend, task, progress)
    described = found.described()
    kept = ("name", "learner", "weight", "loss", "reason")
    return {
        "split": split.name,
        "rows": _rows(split),
        "probability": found.probability[0].tolist(),
        "version": found.version,
        "about": dict(found.about),
        "evaluated": described["evaluated"],
        "failed": described["failed"],
        "wall_s": found.wall_s,
        "cpu_s": found.cpu_s,
        "load_before": load,
        "trajectory": described["trajectory"],
        "members": [{k: member[k] for k in kept} for member in described["members"]],
    }


def _rows(split: Split) -> str:
    """Hash of the rows tested on, by which results of another table are recognised."""
    return hashlib.sha256(split.test.astype("<i8").tobytes()).hexdigest()


def summary(job: Job, splits: list[Split], predictions: Path) -> dict[str, Any]:
    """Report of all stored splits of the table, with other classifiers on the same splits."""
    stored = _stored(job, splits)
    others = _peers(predictions, splits)
    report: dict[str, Any] = {"paper": PAPER, "runs": {}, "rows": []}
    for (backend, family), parts in stored.items():
        frame = _frame(backend, splits, parts)
        name = backend if family == "smartsbd" else f"{backend}, {family}"
        rows = tables.within(job.table, frame, PROTOCOL, job.params)
        report["rows"] += [{**row, "model": name} for row in rows]
        settings = ("seconds", "trials", "jobs", "seed", "version", "about", "data_hash")
        report["runs"][name] = {
            **{k: getattr(parts[0], k) for k in settings},
            "splits": len(parts),
            "evaluated": [part.evaluated for part in parts],
            "failed": [sum(part.failed.values()) for part in parts],
            "wall_s": [round(part.wall_s, 1) for part in parts],
            "cpu_s": [round(part.cpu_s, 1) for part in parts],
            "load_before": [part.load_before for part in parts],
            "members": [part.members for part in parts],
            "differences": {
                peer: paired(job, frame, others.filter(pl.col("model") == peer))
                for peer in others["model"].unique(maintain_order=True)
            },
        }
    return report


def _stored(job: Job, splits: list[Split]) -> dict[tuple[str, str], list[SplitDone]]:
    """Splits of this table that are done with one budget: with that which most of them had."""
    known = {split.name: _rows(split) for split in splits}
    data_hash = file_hash(job.features)
    found: dict[tuple[Any, ...], list[SplitDone]] = {}
    for path in sorted((job.out / "splits").glob("*.json")):
        part = SPLIT.read_at(path)
        if part.data_hash == data_hash and known.get(part.split) == part.rows:
            found.setdefault(tuple(getattr(part, k) for k in BUDGET), []).append(part)
    most: dict[tuple[str, str], list[SplitDone]] = {}
    for (backend, family, *_), parts in found.items():
        if len(parts) >= len(most.get((backend, family), ())):
            most[backend, family] = sorted(parts, key=lambda part: int(part.split))
    return most


def _frame(model: str, splits: Iterable[Split], parts: list[SplitDone]) -> pl.DataFrame:
    tested = {split.name: split.test for split in splits}
    return pl.concat(
        pl.DataFrame({"row": tested[part.split], "probability": part.probability}).select(
            pl.lit(PROTOCOL).alias("protocol"),
            pl.lit(part.split).alias("split"),
            pl.lit(model).alias("model"),
            "row",
            "probability",
        )
        for part in parts
    )


def _peers(path: Path, splits: list[Split]) -> pl.DataFrame:
    """Predictions of the paper's classifiers on these splits; empty if they are of others."""
    columns = {"protocol": pl.String, "split": pl.String, "model": pl.String}
    empty = pl.DataFrame(schema={**columns, "row": pl.Int64, "probability": pl.Float64})
    if not path.is_file():
        return empty
    wanted = (pl.col("protocol") == PROTOCOL) & pl.col("model").is_in(PEERS)
    frame = pl.read_parquet(path).filter(wanted)
    for split in splits:
        rows = frame.filter(pl.col("split") == split.name)
        for _, part in rows.group_by("model"):
            if not np.array_equal(np.sort(part["row"].to_numpy()), np.sort(split.test)):
                return empty
    return frame


def paired(job: Job, frame: pl.DataFrame, peer: pl.DataFrame) -> Interval:
    """Mean of the difference in accuracy on the same rows, with its interval over splits."""
    joined = frame.join(peer, on=["split", "row"], suffix="_peer")
    truth = job.table.y[joined["row"].to_numpy()] == 1
    mine = (joined["probability"].to_numpy() > THRESHOLD) == truth
    theirs = (joined["probability_peer"].to_numpy() > THRESHOLD) == truth
    rows = joined.select("split").with_columns(
        pl.Series("difference", mine.astype(float) - theirs.astype(float))
    )
    each = rows.group_by("split").agg(pl.col("difference").mean())["difference"].to_numpy()
    # The interval's limits are those of a share: a difference lies in -1..1.
    found = over_splits((each + 1) / 2, job.params.protocol.test_share, job.params.confidence)
    mean, low, high = (None if v is None else 2 * float(v) - 1 for v in _values(found))
    return Interval(mean=mean, low=low, high=high)


def _values(found: Interval) -> tuple[float | None, float | None, float | None]:
    return found["mean"], found["low"], found["high"]


def show(report: Table5) -> None:
    """Print the table for a person."""
    print("accuracy per window on unseen connections, all sites (the paper: AUTO 0.957, SVM 0.937)")
    for row in report.rows:
        if row.dataset != "ALL":
            continue
        spent = report.runs[row.model]
        print(
            f"{row.model:<24} {_text(row.both)} over {spent.splits} splits, "
            f"{sum(spent.evaluated)} configurations, {sum(spent.cpu_s):.0f} s of CPU"
        )
        for peer, difference in spent.differences.items():
            print(f"{'':<6}less {peer:<14} {_text(difference, sign='+')}")


def _text(found: Interval, sign: str = "") -> str:
    mean, low, high = _values(found)
    if mean is None:
        return "–"
    limits = "" if low is None or high is None else f" [{low:{sign}.3f}, {high:{sign}.3f}]"
    return f"{mean:{sign}.3f}{limits}"
