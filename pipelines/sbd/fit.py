"""The last step of ``cczoo train sbd``: fit the models that are kept and write them to the zoo."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from export.entry import made_by
from features.sbd import features_of
from features.spec import schema_hash
from models.sbd import accumulate, card
from models.sbd.accumulate import Verdicts
from models.sbd.digits import CALIBRATION, stored
from models.sbd.drift import reference
from models.sbd.evaluate import testset
from models.sbd.evaluate.holdout import sides
from models.sbd.evaluate.splits import Recipe
from models.sbd.results.accuracy import MIXED, RULES, TABLE5, TABLE6, TRANSFER, RuleRow
from models.sbd.results.kept import HEADLINE, METRICS
from models.sbd.results.verdicts import LOFO, PLUS
from models.sbd.train import selection
from models.sbd.train.classifiers import CLASSIFIERS, make, probability
from models.sbd.windows import Windows

if TYPE_CHECKING:
    from features.spec import Feature
    from pipelines.sbd.job import Job

PROTOCOLS = (
    ("within", "four sites, {splits} shuffle splits, trained on the sites alone"),
    ("unseen", "Table 6, unseen, trained on the sites alone"),
    ("unseen-varied", "Table 6, unseen, trained on the sites and the randomised campaign"),
    (
        "mixed",
        "randomised campaign, {splits} shuffle splits, trained on the sites and its rest",
    ),
    ("transfer", "randomised campaign, trained on the sites alone"),
    ("family", "families of conditions left out of training"),
)
"""Protocol -> what it is called in a model card."""

SUMMARIES = {
    "smartsbd": "The paper's SmartSBD classifier, reproduced on kernel logs of this project's lab.",
    "smartsbd-plus": "A shared-bottleneck classifier on scale-free features, for conditions that "
    "training didn't have.",
}


LIMITS = {
    "smartsbd": (
        "Of the paper's features only RTT_SD_Ratio says the same everywhere; distances grow with "
        "RTTs and rates, and Min_RTT_Ratio tells the set-up. Under conditions that training didn't "
        "have expect the last row of the first table, not the first: use smartsbd-plus there.",
    ),
    "smartsbd-plus": (),
}


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
            entry = dataclasses.replace(recipe, name=name)
            written[name] = _write(job, entry, recipe.name, estimator, train, predictions)
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


def reference_of(job: Job, recipe: Recipe, estimator: Any, features: Sequence[Feature]) -> bytes:
    """``reference.json``: what drift of later logs is told by."""
    train, left_out = sides(job.table, job.params.protocol)
    names = recipe.features
    answers = None
    if len(left_out):
        p = probability(estimator, left_out.matrix(names))
        answers = reference.answers(left_out, p, names)
    found = reference.of(train, names, answers, job.params.drift, job.params.seed)
    kept = stored(found.table, features)
    return reference.dumps(dataclasses.replace(found, table=kept), names)


def _write(
    job: Job,
    recipe: Recipe,
    tested_as: str,
    estimator: Any,
    train: Windows,
    predictions: pl.DataFrame,
) -> dict[str, Any]:
    from export.entry import write_entry

    family = "smartsbd-plus" if recipe.name.startswith("smartsbd-plus") else "smartsbd"
    specs = {feature.name: feature for feature in features_of(family)}
    features = [specs[name] for name in recipe.features]
    verdicts = _verdicts(job, tested_as, predictions)
    metrics = _metrics(job, tested_as)
    command = made_by()
    meta = {
        "family": family,
        "feature_settings": job.settings,
        "data_hash": job.data_hash,
        "created_by": command,
        "calibration": {
            "kind": "platt",
            "slope": round(verdicts.slope, CALIBRATION),
            "offset": round(verdicts.offset, CALIBRATION),
        },
        "accumulation": {
            "forget": verdicts.forget,
            "temper": verdicts.temper,
            "confidence": verdicts.confidence,
        },
    }
    text = card.render(
        name=recipe.name,
        summary=SUMMARIES[family],
        label=CLASSIFIERS[recipe.classifier].label,
        settings=dict(recipe.settings),
        count=len(recipe.features),
        features=list(recipe.features),
        trained={
            "windows": len(train),
            "connections": int(np.unique(train.group).size),
            "datasets": sorted(set(train.column("dataset")) - {""}),
        },
        schema_hash=schema_hash(features, job.settings),
        windows=job.settings,
        data_hash=job.data_hash,
        command=command,
        verdicts=verdicts,
        level=round(100 * job.params.confidence),
        figures=told_figures(metrics, job.params.protocol.splits),
        others=card.others(TABLE5.read(job.out), _rules(job), tested_as),
        coverage=_coverage(job, tested_as),
        limits=LIMITS[family],
    )
    values = train.matrix(recipe.features)
    write_entry(
        recipe.name,
        estimator,
        features,
        meta,
        values,
        metrics,
        text,
        labels=train.y,
        test=testset.sample(testset.fixed(job.table, job.params.protocol)),
        reference=reference_of(job, recipe, estimator, features),
        zoo=job.zoo,
    )
    return metrics


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


def told_figures(metrics: Mapping[str, Any], splits: int) -> list[dict[str, str]]:
    """Rows of a card: accuracies of each protocol; ``splits`` where its metrics tell none."""
    return [
        {
            "name": title.format(splits=metrics[protocol].get("splits", splits)),
            "window": card.interval(metrics[protocol]["window"]),
            "connection": card.interval(metrics[protocol]["connection"]),
        }
        for protocol, title in PROTOCOLS
        if protocol in metrics
    ]


def _coverage(job: Job, model: str) -> list[dict[str, str]]:
    found = LOFO.read(job.out).candidates.get(model)
    rows = () if found is None else found.coverage
    return [{k: "–" if v is None else f"{v:.3f}" for k, v in row} for row in rows]


def _rules(job: Job) -> Sequence[RuleRow]:
    """The rules' accuracies; none where the protocol ran without events."""
    return RULES.read(job.out) if (job.out / RULES.name).is_file() else ()
