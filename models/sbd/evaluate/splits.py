"""Splits say which rows train a model and which test it; all predictions are out of sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.parallel import Progress, silent, spread
from models.sbd.evaluate.holdout import unseen_rows
from models.sbd.params import Protocol
from models.sbd.train.classifiers import make, probability
from models.sbd.windows import Windows

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ModelSpec:
    """A model to be made: its name, classifier, features and hyperparameters.

    Attributes
    ----------
    name : str
        The model's name in tables and in the zoo.
    classifier : str
        Key of `models.sbd.train.classifiers.CLASSIFIERS`.
    features : tuple of str
        Columns, in the model's order.
    settings : mapping
        Hyperparameters.
    """

    name: str
    classifier: str
    features: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Split:
    """Training and test rows; no connection has rows in both."""

    protocol: str
    name: str
    train: Rows
    test: Rows


def shuffle_splits(
    table: Windows,
    rows: NDArray[np.bool_],
    always: NDArray[np.bool_],
    params: Protocol,
    protocol: str,
    seed: int,
) -> list[Split]:
    """Stratified shuffle splits by connection.

    Parameters
    ----------
    table : Windows
        All rows.
    rows : bool array [N]
        The rows to be split 90/10, stratified by data set and label.
    always : bool array [N]
        Rows that are in every training set (disjoint from ``rows``).
    params : Protocol
        Number of splits, share of test connections.
    protocol : str
        Kept in the splits.
    seed : int
        Seed of the shuffling.
    """
    rng = np.random.default_rng(seed)
    index = np.flatnonzero(rows)
    connections, first = np.unique(table.group[index], return_index=True)
    stratum = np.char.add(
        np.char.add(table.column("dataset")[index][first], "/"),
        table.y[index][first].astype(str),
    )
    found = []
    for number in range(params.splits):
        tested: list[NDArray[np.int64]] = []
        for name in np.unique(stratum):
            members = rng.permutation(connections[stratum == name])
            count = round(members.size * params.test_share)
            tested.append(members[: max(count, 1) if members.size > 1 else 0])
        held = np.isin(table.group, np.concatenate(tested)) & rows
        found.append(
            Split(
                protocol,
                f"{number}",
                np.flatnonzero((rows & ~held) | always),
                np.flatnonzero(held),
            )
        )
    return found


def site_rows(table: Windows, params: Protocol) -> NDArray[np.bool_]:
    """Rows of the sites: every data set but the unseen cases and the randomised campaign.

    Parameters
    ----------
    table : Windows
        N rows.
    params : Protocol
        Names of those two data sets.

    Returns
    -------
    bool array [N]
    """
    varied = table.column("dataset") == params.varied
    return np.asarray(~varied & ~unseen_rows(table, params), dtype=np.bool_)


def splits(table: Windows, params: Protocol, seed: int) -> list[Split]:
    """All splits of the protocol that the table has data for.

    Models that are made here are judged and thrown away: connections that
    :mod:`models.sbd.evaluate.holdout` keeps from the models that stay may be on either side of a
    split; the unseen cases are never in training, and no other data set is left out.

    ``within``: 10 shuffle splits over the four sites (section 5.1). ``unseen``: trained on the
    sites, tested on Table 6 (section 5.2); ``unseen-varied``: trained on sites and randomised
    campaign. ``transfer``: sites to the randomised campaign. ``mixed``: shuffle splits of the
    randomised campaign, the sites always in training. ``family``: leave one family of the
    campaign out. ``families``: leave two out, for nested choices.
    """
    dataset = table.column("dataset")
    sites = site_rows(table, params)
    unseen = unseen_rows(table, params)
    varied = dataset == params.varied
    nothing = np.zeros(len(table), dtype=np.bool_)
    found: list[Split] = []
    if sites.any():
        found += shuffle_splits(table, sites, nothing, params, "within", seed)
    if sites.any() and unseen.any():
        found.append(Split("unseen", "sites", np.flatnonzero(sites), np.flatnonzero(unseen)))
    if sites.any() and varied.any():
        found.append(Split("transfer", "sites", np.flatnonzero(sites), np.flatnonzero(varied)))
    if varied.any():
        found += shuffle_splits(table, varied, sites, params, "mixed", seed + 1)
        both = sites | varied
        if unseen.any():
            found.append(
                Split("unseen-varied", "all", np.flatnonzero(both), np.flatnonzero(unseen))
            )
        family = table.column(params.family_column)
        names = [name for name in np.unique(family[varied]) if name]
        for name in names if len(names) > 1 else []:
            out = varied & (family == name)
            found.append(Split("family", name, np.flatnonzero(both & ~out), np.flatnonzero(out)))
        for pair in combinations(names, 2) if len(names) > 2 else []:
            out = varied & np.isin(family, pair)
            rest = np.flatnonzero(both & ~out)
            found.append(Split("families", "|".join(pair), rest, np.flatnonzero(out)))
    # A family or case of one class alone leaves nothing to learn from or to judge by.
    return [s for s in found if s.test.size and np.unique(table.y[s.train]).size == 2]


def predict(
    table: Windows,
    model_specs: Sequence[ModelSpec],
    todo: Sequence[Split],
    seed: int,
    workers: int = 2,
    progress: Progress = silent,
) -> pl.DataFrame:
    """Train each model_spec on each split and keep its probabilities on the test rows.

    Returns
    -------
    polars.DataFrame
        ``protocol, split, model, row, probability``; ``row`` indexes ``table``.
    """
    names = sorted({name for model_spec in model_specs for name in model_spec.features})
    matrix = table.matrix(names)
    shared = {"x": matrix, "y": table.y, "splits": list(todo), "model_specs": list(model_specs)}
    columns = {r.name: [names.index(f) for f in r.features] for r in model_specs}
    shared |= {"columns": columns, "seed": seed}
    slow = {"svm-rbf": 0, "gradient-boosting": 1, "random-forest": 2}
    order = sorted(range(len(model_specs)), key=lambda i: slow.get(model_specs[i].classifier, 3))
    # A few splits per task: a task's overhead is some milliseconds, a fit's often less.
    chunks = [list(range(i, min(i + 6, len(todo)))) for i in range(0, len(todo), 6)]
    items = [(i, chunk) for i in order for chunk in chunks]
    parts = spread(_task, items, shared, "protocol", workers, progress)
    frames: list[pl.DataFrame] = [frame for part in parts for frame in part]
    return pl.concat(frames)


def _task(shared: Mapping[str, Any], item: tuple[int, list[int]]) -> list[pl.DataFrame]:
    model_spec: ModelSpec = shared["model_specs"][item[0]]
    columns = shared["columns"][model_spec.name]
    frames = []
    for number in item[1]:
        split: Split = shared["splits"][number]
        x, y = shared["x"], shared["y"]
        model = make(model_spec.classifier, shared["seed"], model_spec.settings)
        model.fit(x[np.ix_(split.train, columns)], y[split.train])
        p = probability(model, x[np.ix_(split.test, columns)])
        frames.append(
            pl.DataFrame({"row": split.test, "probability": p}).select(
                pl.lit(split.protocol).alias("protocol"),
                pl.lit(split.name).alias("split"),
                pl.lit(model_spec.name).alias("model"),
                "row",
                "probability",
            )
        )
    return frames
