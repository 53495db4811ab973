"""A candidate beside the champion on the fixed test set: right answers per window, per connection.

Windows count as a kernel would answer them, by the integer form where there is one; a connection
counts by the verdict at its end.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from data.errors import UserError
from features.sbd import FAMILIES, differing, features_of
from models.judged import Asked, Paired, Pairing
from models.sbd.accumulate import verdicts_of
from models.sbd.computed_with import check
from models.sbd.evaluate import testset
from models.sbd.evaluate.holdout import RULE
from models.sbd.params import Params
from models.sbd.windows import Windows, attributes, read, windows
from models.store import ZooModel


def paired(candidate: ZooModel, champion: ZooModel | None, asked: Asked) -> Pairing:
    """Both models on the fixed test set of a table, or on the samples stored with them.

    Parameters
    ----------
    candidate, champion : ZooModel
        No champion before the first promotion.
    asked : Asked
        ``data`` is a table of ``cczoo features``; ``params`` are :class:`models.sbd.params.Params`.

    Raises
    ------
    UserError
        When no row is left, or a model's windows are others than the table's or the champion's.
    """
    models = [model for model in (candidate, champion) if model is not None]
    params = cast(Params, asked.params)
    table, what = _test_set(models, params, asked)
    names = sorted({name for model in models for name in model.meta.features})
    right = [_right(model, table, asked) for model in models]
    quantities = {
        name: Paired(
            candidate=right[0][place],
            champion=right[1][place] if champion is not None else None,
            group=group,
            meaning=f"of {name} right",
        )
        for place, (name, group) in enumerate(
            {"windows": table.group, "connections": np.unique(table.group)}.items()
        )
    }
    known = [feature.name for family in FAMILIES for feature in features_of(family)]
    return Pairing(
        what=what,
        leading="windows",
        quantities=quantities,
        columns={name: table.column(name) for name in attributes(table.frame, known)},
        described={
            "what": what,
            "hash": testset.table_hash(table, names),
            "windows": len(table),
            "connections": len(quantities["connections"].candidate),
            "unseen": params.protocol.unseen,
            "holdout": params.protocol.holdout,
            "rule": RULE,
        },
    )


def _test_set(models: list[ZooModel], params: Params, asked: Asked) -> tuple[Windows, str]:
    """Rows that both models are judged on, and where they come from."""
    _refuse_other_windows(models, asked.name)
    if asked.data.is_file():
        for model in models:
            check(asked.data, model)
        table = testset.fixed(windows(read(asked.data)), params.protocol)
        table = table.take(table.finite(sorted({n for m in models for n in m.meta.features})))
        what = f"{asked.data}: {params.protocol.unseen} and held-out connections"
    else:
        table, what = _stored(models, asked), "samples stored with the models"
    for column, value in asked.only.items():
        table = table.take(table.column(column) == value)
        what += f", {column} = {value}"
    if not len(table):
        raise UserError(f"{what}: no labelled row to test on: give --features FILE")
    return table, what


def _refuse_other_windows(models: list[ZooModel], name: str) -> None:
    """Answers on windows that aren't the same can't be paired."""
    settings = [model.meta.feature_settings for model in models]
    if names := differing(settings[0], settings[-1]):
        raise UserError(
            f"{name}: the candidate's windows are of another {', '.join(names)} than the "
            "champion's: they can't be compared: register it under another name"
        )


def _stored(models: list[ZooModel], asked: Asked) -> Windows:
    """Rows that the samples of all models share."""
    frame = None
    for model in models:
        if testset.FILE not in model.meta.files:
            raise UserError(
                f"{asked.data}: no such table, and {model.directory} has no {testset.FILE} "
                "to test on instead: give --features FILE of `cczoo features sbd`"
            )
        own = testset.read(model.read_json(testset.FILE)).frame
        if frame is None:
            frame = own
            continue
        key = ["connection", "window", "label"]
        new = [c for c in own.columns if c in key or c not in frame.columns]
        frame = frame.join(own.select(new), on=key, how="inner")
    assert frame is not None
    return windows(frame)


def _right(model: ZooModel, table: Windows, asked: Asked) -> tuple[Any, Any]:
    """Right answers, 0 or 1: per window and per connection, each a float64 array [N]."""
    values = table.matrix(model.meta.features)
    verdicts = verdicts_of(model.meta.calibration, model.meta.accumulation)
    probability = model.predict_proba(values)
    connections = testset.right_connections(table, probability, verdicts)
    right = asked.answer(model, values) == table.y
    return right.astype(np.float64), connections.astype(np.float64)
