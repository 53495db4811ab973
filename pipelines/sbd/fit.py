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
from models.sbd.results.accuracy import MIXED, RULES, TABLE5, TABLE6, TRANSFER, RuleRow
from models.sbd.results.kept import HEADLINE, METRICS
from models.sbd.results.verdicts import LOFO, PLUS
from models.sbd.train import selection
from models.sbd.train.classifiers import make
from models.sbd.windows import Windows
from pipelines.sbd import fit_entry

if TYPE_CHECKING:
    from pipelines.sbd.job import Job


def fit_zoo(job: Job, known: Sequence[Recipe]) -> dict[str, Any]:
    """Fit and write every kept model, and the chosen general one under its plain name."""
    predictions = pl.read_parquet(job.out / "predictions.parquet")
    choice = PLUS.read(job.out)
    chosen = None if choice is None else choice.chosen
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
                others(TABLE5.read(job.out), _rules(job), recipe.name),
                _coverage(job, recipe.name),
            )
    METRICS.write(job.out, written)
    HEADLINE.write(job.out, headline(written))
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
    found: dict[str, Any] = {}
    for protocol, file in (("within", TABLE5), ("mixed", MIXED)):
        for row in file.read(job.out):
            if row.model == model and row.dataset == "ALL":
                found[protocol] = {
                    "window": row.both,
                    "connection": row.connection,
                    "sb": row.sb,
                    "nsb": row.nsb,
                }
    table6 = TABLE6.read(job.out)
    listed = {
        "unseen": table6.unseen,
        "unseen-varied": table6.unseen_varied,
        "transfer": TRANSFER.read(job.out),
        "family": LOFO.read(job.out).families,
    }
    for protocol, rows in listed.items():
        for one in rows:
            if one.model == model:
                into = found.setdefault(protocol, {"by": {}})
                figures = {
                    "window": one.window,
                    "connection": one.connection,
                    "windows": one.windows,
                    "connections": one.connections,
                }
                if one.value == "ALL":
                    into |= figures
                else:
                    into["by"][one.value] = figures
    found["headline"] = {
        protocol: {
            "window": value["window"]["mean"],
            "connection": value["connection"]["mean"],
        }
        for protocol, value in found.items()
    }
    return found


def _coverage(job: Job, model: str) -> list[dict[str, float | None]]:
    found = LOFO.read(job.out).candidates.get(model)
    return [] if found is None else [dict(row) for row in found.coverage]


def _rules(job: Job) -> Sequence[RuleRow]:
    """The rules' accuracies; none where the protocol ran without events."""
    return RULES.read(job.out) if (job.out / RULES.name).is_file() else ()
