"""The entry of a classifier that ``cczoo train sbd`` keeps: its description, card and files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from export.entry import made_by
from features.sbd import features_of
from features.spec import schema_hash
from models.card import Made, Row
from models.origin import Origin
from models.sbd import card
from models.sbd.accumulate import Verdicts, in_meta
from models.sbd.card_figures import accuracies
from models.sbd.digits import CALIBRATION, stored
from models.sbd.drift import reference
from models.sbd.evaluate import testset
from models.sbd.evaluate.holdout import sides
from models.sbd.evaluate.splits import Recipe
from models.sbd.train.classifiers import CLASSIFIERS, probability
from models.sbd.windows import Windows

if TYPE_CHECKING:
    from features.spec import Feature
    from pipelines.sbd.job import Job


def write(
    job: Job,
    recipe: Recipe,
    estimator: Any,
    train: Windows,
    verdicts: Verdicts,
    metrics: Mapping[str, Any],
    others: Sequence[Row],
    coverage: Sequence[Mapping[str, float | None]],
) -> None:
    """Write a fitted model to the zoo, under the recipe's name.

    Parameters
    ----------
    job : Job
    recipe : Recipe
    estimator : fitted estimator
    train : Windows
        What it was fitted on.
    verdicts : Verdicts
        How its windows add up.
    metrics : mapping
        For ``metrics.json``, accuracies of the card among them.
    others, coverage
        As for :func:`models.sbd.card.text`.
    """
    from export.entry import write_entry

    family = "smartsbd-plus" if recipe.name.startswith("smartsbd-plus") else "smartsbd"
    specs = {feature.name: feature for feature in features_of(family)}
    features = [specs[name] for name in recipe.features]
    origin = Origin(family, made_by(), job.settings, job.data_hash)
    made = Made(
        kind=CLASSIFIERS[recipe.classifier].label,
        features=recipe.features,
        count=len(recipe.features),
        trained_on=card.trained_on(train),
        schema_hash=schema_hash(features, job.settings),
        origin=origin,
        settings=recipe.settings,
    )
    rows = accuracies(metrics, job.params.protocol.splits)
    write_entry(
        recipe.name,
        estimator,
        features,
        {**origin.meta(), **in_meta(verdicts, CALIBRATION)},
        train.matrix(recipe.features),
        metrics,
        card.text(recipe.name, made, verdicts, job.params.confidence, rows, others, coverage),
        labels=train.y,
        test=testset.sample(testset.fixed(job.table, job.params.protocol)),
        reference=_reference(job, recipe, estimator, features),
        zoo=job.zoo,
    )


def _reference(job: Job, recipe: Recipe, estimator: Any, features: Sequence[Feature]) -> bytes:
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
