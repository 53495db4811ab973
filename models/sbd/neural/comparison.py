"""The neural classifier is compared with the others on the same windows, by paired intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.sbd.evaluate.tables import PLAIN, hits
from models.sbd.params import Params
from models.sbd.windows import Windows
from models.stats.intervals import by_connection

KEYS = ["protocol", "split"]


def compare(
    table: Windows, answers: pl.DataFrame, others: pl.DataFrame, params: Params
) -> list[dict[str, Any]]:
    """Accuracies and their differences per protocol and other model.

    A window's (or a connection's) score is the share of seeds that answer it rightly, so that
    seeds add no independent evidence; intervals are bootstrapped over connections.

    Parameters
    ----------
    table : Windows
        The table whose rows ``row`` numbers.
    answers : polars.DataFrame
        Result of `models.sbd.neural.outofsample.run`.
    others : polars.DataFrame
        ``protocol, split, model, row, probability`` of other models on the same splits.
    params : Params
        Confidence and resamples.

    Returns
    -------
    list of dict
        ``protocol, splits, seeds, windows, connections``, intervals of the accuracy (``window``,
        by class ``sb`` and ``nsb``, ``connection``), ``by`` (per case or family) and ``against``:
        other model -> ``window``, ``connection``, ``window_difference``,
        ``connection_difference`` (neural less other, paired).

    Raises
    ------
    ValueError
        When a split has other test rows in the two tables.
    """
    found = []
    for (protocol,), mine in answers.group_by("protocol", maintain_order=True):
        own = _scores(table, mine)
        splits = mine["split"].unique(maintain_order=True).to_list()
        row: dict[str, Any] = {
            "protocol": protocol,
            "splits": len(splits),
            "seeds": mine["seed"].n_unique(),
            "windows": len(own.window),
            "connections": int(np.unique(table.group[own.rows]).size),
            "window": _interval(own.window, own.group, params),
            "sb": _interval(own.window[own.y == 1], own.group[own.y == 1], params),
            "nsb": _interval(own.window[own.y == 0], own.group[own.y == 0], params),
            "connection": _interval(own.final, own.of_final, params),
            "by": _by(table, own, params.protocol.family_column, str(protocol)),
            "against": {},
        }
        same = others.filter((pl.col("protocol") == protocol) & pl.col("split").is_in(splits))
        for (model,), theirs in same.group_by("model", maintain_order=True):
            if not np.array_equal(_tested(theirs), own.rows):
                raise ValueError(f"{protocol}: {model} was tested on other windows")
            other = _scores(table, theirs)
            row["against"][str(model)] = {
                "window": _interval(other.window, own.group, params),
                "connection": _interval(other.final, own.of_final, params),
                "window_difference": _interval(own.window - other.window, own.group, params),
                "connection_difference": _interval(own.final - other.final, own.of_final, params),
            }
        found.append(row)
    return found


class _Scores:
    """Share of right answers per tested window and per tested connection, over the seeds."""

    def __init__(self, table: Windows, parts: Sequence[pl.DataFrame]) -> None:
        rows, window, final, ends = [], [], [], []
        for part in parts:
            seeds = [part] if "seed" not in part.columns else part.partition_by("seed")
            each = []
            for one in seeds:
                ordered = one.sort("row")
                row = ordered["row"].to_numpy()
                hit, last, right = hits(table, row, ordered["probability"].to_numpy(), PLAIN)
                each.append((hit.astype(np.float64), right.astype(np.float64)))
            rows.append(row)
            ends.append(row[last])
            window.append(np.mean([hit for hit, _ in each], axis=0))
            final.append(np.mean([right for _, right in each], axis=0))
        self.rows: NDArray[np.int64] = np.concatenate(rows)
        self.window: NDArray[np.float64] = np.concatenate(window)
        self.final: NDArray[np.float64] = np.concatenate(final)
        self.group, self.y = table.group[self.rows], table.y[self.rows]
        self.of_final = table.group[np.concatenate(ends)]


def _tested(answers: pl.DataFrame) -> NDArray[np.int64]:
    """Rows in the order that `_Scores` has them."""
    return answers.select("split", "row").unique().sort("split", "row")["row"].to_numpy()


def _scores(table: Windows, answers: pl.DataFrame) -> _Scores:
    ordered = answers.sort("split", maintain_order=True)
    return _Scores(table, ordered.partition_by("split", maintain_order=True))


def _by(table: Windows, scores: _Scores, column: str, protocol: str) -> dict[str, float]:
    """Accuracy per case of the unseen data set, or per family of conditions."""
    value = table.column("case" if protocol.startswith("unseen") else column)[scores.rows]
    return {str(v): float(scores.window[value == v].mean()) for v in np.unique(value) if v}


def _interval(
    values: NDArray[np.float64], group: NDArray[np.int64], params: Params
) -> dict[str, Any]:
    return {**by_connection(values, group, params.confidence, params.bootstrap)}
