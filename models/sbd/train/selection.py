"""The general model is chosen by conditions it wasn't trained on, without looking at the answer.

For every family of conditions that is left out, candidates are compared, calibrated and given
their memory on the *other* families only, each of those predicted by models that have seen
neither it nor the outer one (the ``families`` splits of `models.sbd.evaluate.splits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.sbd import accumulate
from models.sbd.accumulate import VerdictSettings
from models.sbd.params import THRESHOLD
from models.sbd.train.model_specs import BOUNDS
from models.sbd.windows import Windows


def inner(
    predictions: pl.DataFrame, model: str, left_out: str, table: Windows, column: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows and probabilities of the other families from models that saw neither them nor it.

    Parameters
    ----------
    predictions : polars.DataFrame
        Result of `models.sbd.evaluate.splits.predict`.
    model, left_out, column : str
        Model's name, the outer family, the column of families.
    table : Windows
        The table that ``row`` indexes.

    Returns
    -------
    (rows, probability)
        int64 array [M] and float64 array [M], in the table's order.
    """
    pairs = predictions.filter(
        (pl.col("protocol") == "families")
        & (pl.col("model") == model)
        & pl.col("split").str.split("|").list.contains(left_out)
    ).sort("row")
    rows = pairs["row"].to_numpy()
    family = table.column(column)[rows]
    keep = family != left_out
    return rows[keep], pairs["probability"].to_numpy()[keep]


def outer(predictions: pl.DataFrame, model: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows and probabilities of all families, each left out once."""
    mine = predictions.filter((pl.col("protocol") == "family") & (pl.col("model") == model)).sort(
        "row"
    )
    return mine["row"].to_numpy(), mine["probability"].to_numpy()


def merit(
    rows: NDArray[np.int64], probability: NDArray[np.float64], table: Windows, column: str
) -> float:
    """Mean over families of the window accuracy; the figure that candidates are compared by."""
    family = table.column(column)[rows]
    hit = (probability > THRESHOLD) == (table.y[rows] == 1)
    return float(np.mean([hit[family == name].mean() for name in np.unique(family)]))


def choose(
    predictions: pl.DataFrame,
    candidates: Sequence[str],
    table: Windows,
    column: str,
    confidence: float,
    beside: Sequence[str] = (),
) -> dict[str, Any]:
    """Choose a candidate: once without each family, for honest figures, and once with them all.

    Candidates named ``beside`` get their merits and verdicts, and are never chosen.

    Returns
    -------
    dict
        ``chosen``: the model to ship; ``merits``: candidate -> merit; ``verdicts``: candidate ->
        `VerdictSettings` fitted on all left-out families; ``outer``: family -> ``{chosen, merits,
        verdicts}`` made without that family. Empty if there are fewer than three families.
    """
    families = predictions.filter(pl.col("protocol") == "family")["split"].unique().sort()
    merits, verdicts = {}, {}
    eligible = [name for name in candidates if name not in beside]
    for name in candidates:
        rows, p = outer(predictions, name)
        if rows.size == 0:
            return {}
        merits[name] = merit(rows, p, table, column)
        verdicts[name] = _fitted(name, p, table, rows, confidence)
    result: dict[str, Any] = {
        "chosen": max(eligible, key=lambda name: merits[name]),
        "merits": merits,
        "verdicts": verdicts,
        "outer": {},
    }
    for family in families:
        scores: dict[str, float] = {}
        fitted: dict[str, VerdictSettings] = {}
        for name in candidates:
            rows, p = inner(predictions, name, family, table, column)
            if rows.size == 0:
                break
            scores[name] = merit(rows, p, table, column)
            fitted[name] = _fitted(name, p, table, rows, confidence)
        if len(scores) == len(candidates):
            result["outer"][family] = {
                "chosen": max(eligible, key=scores.__getitem__),
                "merits": scores,
                "verdicts": fitted,
            }
    return result


def _fitted(
    name: str,
    probability: NDArray[np.float64],
    table: Windows,
    rows: NDArray[np.int64],
    confidence: float,
) -> VerdictSettings:
    y, group = table.y[rows], table.group[rows]
    return accumulate.fit(probability, y, group, confidence, BOUNDS.get(name))
