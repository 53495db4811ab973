"""The models that ``cczoo train sbd`` keeps: fitted, with all that their entries tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from features.sbd import features_of
from features.spec import Feature, schema_hash
from models.card import Made
from models.origin import Origin
from models.sbd import accumulate, card
from models.sbd.accumulate import VerdictSettings
from models.sbd.card_figures import accuracies, others
from models.sbd.digits import CALIBRATION, stored
from models.sbd.drift import reference
from models.sbd.evaluate import testset
from models.sbd.evaluate.splits import ModelSpec
from models.sbd.results.accuracy import MIXED, RULES, TABLE5, TABLE6, TRANSFER, RuleRow
from models.sbd.results.verdicts import LOFO, PLUS
from models.sbd.train import selection
from models.sbd.train.candidates import all_model_specs
from models.sbd.train.classifiers import CLASSIFIERS, make, probability
from models.sbd.train.model_specs import BOUNDS, family_of
from models.sbd.windows import Windows
from models.trained import Trained

if TYPE_CHECKING:
    from models.sbd.train.job import Job


def kept(job: Job) -> Iterator[Trained]:
    """Fit every model that is kept, and the chosen general one under its plain name too.

    Parameters
    ----------
    job : Job
        ``out`` holds what the search and the protocol have left.
    """
    predictions = pl.read_parquet(job.out / "predictions.parquet")
    choice = PLUS.read(job.out)
    chosen = None if choice is None else choice.chosen
    train = training_rows(job)
    for model_spec in all_model_specs(job):
        if model_spec.name.endswith(("-all", "-top1")) or model_spec.classifier == "threshold":
            continue
        estimator = make(model_spec.classifier, job.params.seed, model_spec.settings)
        estimator.fit(train.matrix(model_spec.features), train.y)
        trained = _trained(job, model_spec, estimator, _verdicts(job, model_spec.name, predictions))
        yield trained
        if model_spec.name == chosen:
            yield dataclasses.replace(trained, name="smartsbd-plus")


def _trained(job: Job, model_spec: ModelSpec, estimator: Any, verdicts: VerdictSettings) -> Trained:
    metrics = _metrics(job, model_spec.name)
    train = training_rows(job)
    family = family_of(model_spec.name)
    specs = {feature.name: feature for feature in features_of(family)}
    features = [specs[name] for name in model_spec.features]
    origin = Origin(family, job.command, job.settings, job.content_of(family))
    made = Made(
        kind=CLASSIFIERS[model_spec.classifier].label,
        features=model_spec.features,
        count=len(model_spec.features),
        trained_on=card.trained_on(train),
        schema_hash=schema_hash(features, job.settings),
        origin=origin,
        settings=model_spec.settings,
    )
    return Trained(
        name=model_spec.name,
        model=estimator,
        features=features,
        meta={**origin.meta(), **accumulate.in_meta(verdicts, CALIBRATION)},
        observations=train.matrix(model_spec.features),
        metrics=metrics,
        labels=train.y,
        test=testset.kept_with(testset.fixed(job.table, job.params.protocol), features),
        files={reference.FILE: _reference(job, model_spec, estimator, features)},
        card={
            "made": made,
            "verdicts": verdicts,
            "level": job.params.confidence,
            "accuracies": accuracies(metrics, job.params.protocol.splits),
            "others": others(TABLE5.read(job.out), _rules(job), model_spec.name),
            "coverage": _coverage(job, model_spec.name),
        },
    )


def _reference(
    job: Job, model_spec: ModelSpec, estimator: Any, features: Sequence[Feature]
) -> bytes:
    """``reference.json``: a sample of the training set, by which later drift is recognised."""
    train, left_out = job.split
    names = model_spec.features
    answers = None
    if len(left_out):
        p = probability(estimator, left_out.matrix(names))
        answers = reference.answers(left_out, p, names)
    found = reference.of(train, names, answers, job.params.drift, job.params.seed)
    rows = stored(found.table, features)
    return reference.dumps(dataclasses.replace(found, table=rows), names)


def training_rows(job: Job) -> Windows:
    """Rows that a kept model learns from; see :mod:`models.sbd.evaluate.holdout`."""
    return job.split[0]


def _verdicts(job: Job, model: str, predictions: pl.DataFrame) -> VerdictSettings:
    """Calibration and memory from predictions on left-out families, or on shuffle splits."""
    rows, p = selection.outer(predictions, model)
    if rows.size == 0:
        mine = predictions.filter(pl.col("model") == model)
        mine = mine.unique("row", keep="first", maintain_order=True).sort("row")
        rows, p = mine["row"].to_numpy(), mine["probability"].to_numpy()
    y, group = job.table.y[rows], job.table.group[rows]
    return accumulate.fit(p, y, group, job.params.plus.confidence, BOUNDS.get(model))


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
