"""The last step of ``cczoo train sbd``: fit the models that are kept and write them to the zoo."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from models.sbd import accumulate
from models.sbd.accumulate import Verdicts
from models.sbd.card_figures import others
from models.sbd.evaluate.holdout import sides
from models.sbd.evaluate.splits import Recipe
from models.sbd.train import selection
from models.sbd.train.classifiers import make
from models.sbd.windows import Windows
from pipelines.sbd import fit_entry

if TYPE_CHECKING:
    from pipelines.sbd.job import Job


def fit_zoo(job: Job, known: Sequence[Recipe]) -> dict[str, Any]:
    """Fit and write every kept model, and the chosen general one under its plain name."""
    predictions = pl.read_parquet(job.out / "predictions.parquet")
    chosen = job.read("plus.json").get("chosen")
    train = training_rows(job)
    written: dict[str, Any] = {}
    for recipe in known:
        if recipe.name.endswith(("-all", "-top1")) or recipe.classifier == "threshold":
            continue
        names = [recipe.name] + (["smartsbd-plus"] if recipe.name == chosen else [])
        estimator = make(recipe.classifier, job.params.seed, recipe.settings)
        estimator.fit(train.matrix(recipe.features), train.y)
        for name in names:
            written[name] = _metrics(job, recipe.name)
            fit_entry.write(
                job,
                dataclasses.replace(recipe, name=name),
                estimator,
                train,
                _verdicts(job, recipe.name, predictions),
                written[name],
                others(job.read("table5.json"), _optional(job, "rules.json"), recipe.name),
                _coverage(job, recipe.name),
            )
    job.write("metrics.json", written)
    job.write("headline.json", headline(written))
    return {name: metrics["headline"] for name, metrics in written.items()}


def headline(written: Mapping[str, Any]) -> dict[str, float]:
    """Flat ``{"model.protocol.window": accuracy}`` for trackers and DVC."""
    return {
        f"{name}.{protocol}.{kind}": figure
        for name, metrics in written.items()
        for protocol, figures in metrics["headline"].items()
        for kind, figure in figures.items()
        if figure is not None
    }


def training_rows(job: Job) -> Windows:
    """Rows that a kept model learns from; see :mod:`models.sbd.evaluate.holdout`."""
    return sides(job.table, job.params.protocol)[0]


def _verdicts(job: Job, model: str, predictions: pl.DataFrame) -> Verdicts:
    """Calibration and memory from predictions on left-out families, or on shuffle splits."""
    rows, p = selection.outer(predictions, model)
    if rows.size == 0:
        mine = predictions.filter(pl.col("model") == model)
        mine = mine.unique("row", keep="first", maintain_order=True).sort("row")
        rows, p = mine["row"].to_numpy(), mine["probability"].to_numpy()
    y, group = job.table.y[rows], job.table.group[rows]
    return accumulate.fit(p, y, group, job.params.plus.confidence)


def _metrics(job: Job, model: str) -> dict[str, Any]:
    column = job.params.protocol.family_column
    found: dict[str, Any] = {}
    for protocol, file in (("within", "table5.json"), ("mixed", "mixed.json")):
        for row in job.read(file):
            if row["model"] == model and row["dataset"] == "ALL":
                found[protocol] = {
                    "window": row["both"],
                    "connection": row["connection"],
                    "sb": row["sb"],
                    "nsb": row["nsb"],
                }
    table6 = job.read("table6.json")
    listed = {
        "unseen": (table6["unseen"], "case"),
        "unseen-varied": (table6["unseen-varied"], "case"),
        "transfer": (job.read("transfer.json"), column),
        "family": (job.read("lofo.json")["families"], column),
    }
    for protocol, (rows, key) in listed.items():
        for row in rows:
            if row["model"] == model:
                into = found.setdefault(protocol, {"by": {}})
                figures = {k: row[k] for k in ("window", "connection", "windows", "connections")}
                if row[key] == "ALL":
                    into |= figures
                else:
                    into["by"][row[key]] = figures
    found["headline"] = {
        protocol: {
            "window": value["window"]["mean"],
            "connection": value["connection"]["mean"],
        }
        for protocol, value in found.items()
    }
    return found


def _coverage(job: Job, model: str) -> list[dict[str, float | None]]:
    found = job.read("lofo.json")["candidates"].get(model, {}).get("coverage", [])
    return list(found)


def _optional(job: Job, name: str) -> Any:
    return job.read(name) if (job.out / name).is_file() else []
