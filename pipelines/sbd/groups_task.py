"""The Ray tasks of ``cczoo train sbd groups``: each fits a pooled model or trains one group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from features.sbd import features_of
from features.spec import schema_hash
from models.card import Card, Made, Table, facts, interval, render
from models.origin import Origin
from models.sbd import accumulate, card
from models.sbd import usable as rows
from models.sbd.accumulate import VerdictSettings
from models.sbd.evaluate import testset
from models.sbd.evaluate.holdout import training_rows
from models.sbd.groups import own
from models.sbd.groups.own import Plan
from models.sbd.params import THRESHOLD, Params
from models.sbd.train.classifiers import CLASSIFIERS, Estimator, probability
from models.sbd.usable import Dropped, check_unique
from models.sbd.windows import Windows, windows

Rows = NDArray[np.int64]

LIMIT = "Trained and tested on connections of {}{}."


@dataclass(frozen=True)
class Setup:
    """The settings that all tasks of a run share.

    Attributes
    ----------
    name : str
        Registered name of the pooled model.
    family : str
        Family of features.
    plan : Plan
    params : Params
    data_hash, command : str
        Hash of the data and the command, as the entries state them.
    settings : mapping
        Settings that the features were computed with.
    """

    name: str
    family: str
    plan: Plan
    params: Params
    data_hash: str
    command: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Pooled:
    """Pooled models: for each (repeat, fold) the one fitted without it, and the one on all rows."""

    setup: Setup
    folds: Mapping[tuple[int, int], Estimator]
    final: Estimator


@dataclass(frozen=True)
class Group:
    """A group with its rows of the features table."""

    name: str
    registered: str
    values: Mapping[str, str]
    frame: pl.DataFrame


@dataclass(frozen=True)
class Outcome:
    """The reported row of a model, and the files of its zoo entry; empty if none was kept."""

    row: dict[str, Any]
    files: dict[str, bytes]


def usable(frame: pl.DataFrame, setup: Setup) -> tuple[Windows, Dropped]:
    """Labelled rows whose features are finite, and counts of the rows left out.

    Raises
    ------
    UserError
        When a window occurs twice.
    """
    table = windows(frame)
    check_unique(table, "features table")
    mask, dropped = rows.usable(table, setup.plan.features, labelled=True)
    return table.take(mask), dropped


def learned(table: Windows, setup: Setup) -> Windows:
    """Rows that models may learn from: all but the fixed test set."""
    return table.take(training_rows(table, setup.params.protocol))


def fit_pooled(
    shared: tuple[Setup, Windows], item: tuple[int, int] | None
) -> tuple[Estimator | None, dict[str, Any]]:
    """Fit the pooled model without one fold (None if a class is missing), or on all rows."""
    setup, table = shared
    if item is not None:
        return own.fit_without(table, setup.plan, *item), {}
    return own.fit(table, setup.plan)


def pooled_entry(pooled: Pooled, rows: Windows, settings: Mapping[str, Any]) -> Outcome:
    """Measure the pooled model out of sample and make its entry.

    Parameters
    ----------
    pooled : Pooled
        The pooled models.
    rows : Windows
        The rows that they learned from, and those of the fixed test set.
    settings : mapping
        Hyperparameters chosen on all rows that they learned from.
    """
    setup, plan = pooled.setup, pooled.setup.plan
    table = learned(rows, setup)
    p = np.empty((plan.groups.repeats, len(table)))
    for repeat, fold in plan.rounds:
        left = own.fold_of(table, plan, repeat) == fold
        if left.any():
            x = table.take(left).matrix(plan.features)
            p[repeat, left] = probability(pooled.folds[repeat, fold], x)
    right = own.hits(p, table.y)
    row: dict[str, Any] = {
        "registered": setup.name,
        "connections": int(np.unique(table.group).size),
        "windows": len(table),
        "pooled": own.paired(right, right, table.group, plan)["pooled"],
        "settings": dict(settings),
    }
    verdicts = accumulate.fit(p.mean(axis=0), table.y, table.group, setup.params.plus.confidence)
    wording = Wording(
        title=setup.name,
        summary="The pooled model: for every group whose own model doesn't beat it.",
        limit=LIMIT.format("all groups together", ""),
        figures={"all groups, connections left out": row["pooled"]},
    )
    test = testset.fixed(rows, setup.params.protocol)
    return Outcome(row, entry(setup, wording, pooled.final, table, test, verdicts, row))


def train_group(pooled: Pooled, group: Group) -> Outcome:
    """Train a group's own model, compare it with the pooled one and choose which one serves it."""
    setup, plan = pooled.setup, pooled.setup.plan
    table, dropped = usable(group.frame, setup)
    train = learned(table, setup)
    row: dict[str, Any] = {
        "group": group.name,
        "values": dict(group.values),
        "registered": group.registered,
        "connections": int(np.unique(train.group).size),
        "windows": len(train),
        "dropped": dropped.described(),
        "decision": "pooled",
    }
    short = own.lacking(train, plan.groups)
    if short:
        return Outcome({**row, "reason": f"too little data: {short}"}, {})
    p, q = own.cross_fit(train, plan, pooled.folds)
    if np.isnan(p).any():
        return Outcome({**row, "reason": "too little data: a fold leaves one class alone"}, {})
    row |= own.paired(own.hits(p, train.y), own.hits(q, train.y), train.group, plan)
    better = row["difference"]["low"] > 0
    row["reason"] = f"{'better' if better else 'not better'}: {_signed(row['difference'])}"
    estimator, row["settings"] = own.fit(train, plan)
    test = testset.fixed(table, setup.params.protocol)
    row["test"] = _tested(test, estimator, pooled)
    if not better:
        return Outcome(row, {})
    row["decision"] = "own"
    verdicts = accumulate.fit(p.mean(axis=0), train.y, train.group, setup.params.plus.confidence)
    wording = Wording(
        title=group.registered,
        summary=f"For connections of {group.name} alone: it beats the pooled {setup.name} there.",
        limit=LIMIT.format(group.name, "; others take the pooled model"),
        figures={
            "the group's connections, left out": row["own"],
            "the pooled model on the same": row["pooled"],
            "own less pooled": row["difference"],
        },
    )
    return Outcome(row, entry(setup, wording, estimator, train, test, verdicts, row))


@dataclass(frozen=True)
class Wording:
    """The texts and figures of a card that don't come from the training's rows."""

    title: str
    summary: str
    limit: str
    figures: Mapping[str, Mapping[str, float | None]]


def entry(
    setup: Setup,
    wording: Wording,
    estimator: Estimator,
    train: Windows,
    test: Windows,
    verdicts: VerdictSettings,
    row: Mapping[str, Any],
) -> dict[str, bytes]:
    """Files of a zoo entry, all named as the pooled model's: generated code can be exchanged."""
    from export.entry import describe_fitted

    plan = setup.plan
    specs = {feature.name: feature for feature in features_of(setup.family)}
    features = [specs[name] for name in plan.features]
    origin = Origin(setup.family, setup.command, setup.settings, setup.data_hash)
    made = Made(
        kind=CLASSIFIERS[plan.classifier].label,
        features=plan.features,
        count=len(plan.features),
        trained_on=f"{row['windows']} windows of {row['connections']} connections",
        schema_hash=schema_hash(features, setup.settings),
        origin=origin,
        settings=row["settings"],
    )
    accuracy = row["own" if "own" in row else "pooled"]["mean"]
    return describe_fitted(
        setup.name,
        estimator,
        features,
        {**origin.meta(), **accumulate.in_meta(verdicts)},
        train.matrix(plan.features),
        {"headline": {"left-out": {"window": accuracy}}, **row},
        _card(wording, made, verdicts, plan.confidence),
        labels=train.y,
        test=testset.sample(test),
    ).contents()


def _card(wording: Wording, made: Made, verdicts: VerdictSettings, confidence: float) -> str:
    figures = Table(
        tuple((name, interval(value)) for name, value in wording.figures.items()),
        before=f"Share of windows right, {100 * confidence:.0f} % intervals, on connections that "
        "training left out.",
    )
    return render(
        Card(
            title=wording.title,
            summary=wording.summary,
            facts={**facts(made), "State over windows": card.state(verdicts)},
            figures=(figures,),
            limits=(wording.limit,),
        )
    )


def _tested(test: Windows, estimator: Estimator, pooled: Pooled) -> dict[str, Any] | None:
    """Accuracies of both final models on the group's rows of the fixed test set."""
    if not len(test):
        return None
    x = test.matrix(pooled.setup.plan.features)
    right = [(probability(m, x) > THRESHOLD) == (test.y == 1) for m in (estimator, pooled.final)]
    mine, other = (one.astype(np.float64) for one in right)
    return {
        "connections": int(np.unique(test.group).size),
        "windows": len(test),
        **own.paired(mine, other, test.group, pooled.setup.plan),
    }


def _signed(value: Mapping[str, float | None]) -> str:
    return f"{value['mean']:+.3f} [{value['low']:+.3f}, {value['high']:+.3f}]"
