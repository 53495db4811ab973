"""Result tables from out-of-sample predictions: what the report, cards and metrics are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.sbd.accumulate import VerdictSettings, last_of_each
from models.sbd.evaluate.scores import (
    LEVELS,
    confusion,
    connection_state,
    coverage,
    score,
)
from models.sbd.evaluate.splits import site_rows
from models.sbd.params import THRESHOLD, Params
from models.sbd.results.verdicts import Choice
from models.sbd.windows import Windows
from models.stats.calibration import apply_isotonic, isotonic, reliability, sigmoid
from models.stats.intervals import by_connection, over_splits

PLAIN = VerdictSettings()
"""Sum of log-odds, nothing fitted: the connection's answer wherever calibration isn't at issue."""


def _of(predictions: pl.DataFrame, protocol: str, model: str) -> pl.DataFrame:
    mine = (pl.col("protocol") == protocol) & (pl.col("model") == model)
    return predictions.filter(mine)


def hits(
    table: Windows,
    rows: NDArray[np.int64],
    probability: NDArray[np.float64],
    verdicts: VerdictSettings,
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
    """Right answers per window [M], last row per connection [C], right answers per connection."""
    y, group = table.y[rows], table.group[rows]
    hit = (probability > THRESHOLD) == (y == 1)
    last = last_of_each(group)
    state = connection_state(probability, group, verdicts)
    return hit, last, (state[last] >= 0) == (y[last] == 1)


def within(
    table: Windows, predictions: pl.DataFrame, protocol: str, params: Params
) -> list[dict[str, Any]]:
    """Table 5's counterpart: per data set and class over the shuffle splits.

    Returns
    -------
    list of dict
        ``{dataset, model, both, sb, nsb, connection}``, each an interval over splits; ``dataset``
        is a name or ``ALL``.
    """
    rows_out = []
    dataset = table.column("dataset")
    for model in predictions["model"].unique(maintain_order=True):
        mine = _of(predictions, protocol, model)
        per: dict[str, list[list[float]]] = {}
        for _, part in mine.group_by("split", maintain_order=True):
            part = part.sort("row")
            rows, p = part["row"].to_numpy(), part["probability"].to_numpy()
            hit, last, final = hits(table, rows, p, PLAIN)
            y, name = table.y[rows], dataset[rows]
            for one in ("ALL", *np.unique(name)):
                inside = np.full(rows.size, True) if one == "ALL" else name == one
                of_last = inside[last]
                figures = [hit[inside], hit[inside & (y == 1)], hit[inside & (y == 0)]]
                per.setdefault(str(one), []).append([_mean(f) for f in (*figures, final[of_last])])
        for one in sorted(per):
            columns = np.array(per[one]).T
            figures = [
                over_splits(c, params.protocol.test_share, params.confidence) for c in columns
            ]
            keys = ("both", "sb", "nsb", "connection")
            rows_out.append(
                {"dataset": one, "model": model, **dict(zip(keys, figures, strict=True))}
            )
    return rows_out


def by_value(
    table: Windows,
    predictions: pl.DataFrame,
    protocol: str,
    column: str,
    params: Params,
    verdicts: Mapping[tuple[str, str], VerdictSettings] | None = None,
) -> list[dict[str, Any]]:
    """Accuracy per case or family, with bootstrap intervals over connections, and ``ALL``.

    Parameters
    ----------
    table, predictions, protocol
        What was predicted.
    column : str
        Attribute to break down by.
    params : Params
        Confidence, resamples, seed.
    verdicts : mapping, optional
        (model, value) -> settings of the connection's verdict; plain sums by default.

    Returns
    -------
    list of dict
        ``{model, <column>, window, connection, windows, connections}``.
    """
    rows_out = []
    for model in predictions["model"].unique(maintain_order=True):
        mine = _of(predictions, protocol, model).sort("row")
        if mine.is_empty():
            continue
        rows, p = mine["row"].to_numpy(), mine["probability"].to_numpy()
        value = table.column(column)[rows]
        all_hits, all_finals, ends = [], [], []
        for one in np.unique(value):
            inside = value == one
            settings = (verdicts or {}).get((model, str(one)), PLAIN)
            hit, last, final = hits(table, rows[inside], p[inside], settings)
            group = table.group[rows[inside]]
            rows_out.append(
                {"model": model, column: str(one), **_both(hit, final, group, last, params)}
            )
            all_hits.append(hit)
            all_finals.append(final)
            ends.append((group, group[last]))
        group = np.concatenate([a for a, _ in ends])
        of_final = np.concatenate([b for _, b in ends])
        rows_out.append(
            {
                "model": model,
                column: "ALL",
                "window": by_connection(
                    np.concatenate(all_hits), group, params.confidence, params.bootstrap
                ),
                "connection": by_connection(
                    np.concatenate(all_finals), of_final, params.confidence, params.bootstrap
                ),
                "windows": group.size,
                "connections": of_final.size,
            }
        )
    return rows_out


def rules(
    table: Windows, shares: Mapping[str, NDArray[np.float64]], params: Params
) -> list[dict[str, Any]]:
    """Accuracy of the rule-based schemes over all rows, per data set.

    Parameters
    ----------
    table : Windows
        N labelled rows.
    shares : mapping
        Scheme -> float64 array [N, 2]: shares of time in "same" and "different"; NaN if it
        couldn't run.

    Returns
    -------
    list of dict
        ``{dataset, rule, both, sb, nsb}`` as mean share of time in the right state (the paper's
        count), and ``window``, ``connection``: accuracy of the verdict that most time goes to.
    """
    seconds = (table.frame["end_us"] - table.frame["start_us"]).cast(pl.Float64).to_numpy()
    dataset = table.column("dataset")
    # ALL is Table 5's: the four sites together, as in `within`.
    sites = site_rows(table, params.protocol)
    sites = sites if sites.any() else np.full(len(table), True)
    rows_out = []
    for rule, raw in shares.items():
        value = np.nan_to_num(raw)
        right = np.where(table.y == 1, value[:, 0], value[:, 1])
        wrong = np.where(table.y == 1, value[:, 1], value[:, 0])
        for one in ("ALL", *np.unique(dataset)):
            inside = sites if one == "ALL" else dataset == one
            group, y = table.group[inside], table.y[inside]
            _, code = np.unique(group, return_inverse=True)
            weighted = (right - wrong)[inside] * seconds[inside]
            final = np.bincount(code, weights=weighted) > 0
            figures = {
                key: by_connection(
                    right[inside][mask], group[mask], params.confidence, params.bootstrap
                )
                for key, mask in (("both", y >= 0), ("sb", y == 1), ("nsb", y == 0))
            }
            hit = (right > wrong)[inside]
            last = np.unique(code, return_index=True)[1]
            rows_out.append(
                {
                    "dataset": str(one),
                    "rule": rule,
                    **figures,
                    **_both(hit, final, group, last, params),
                }
            )
    return rows_out


def calibration(
    table: Windows, predictions: pl.DataFrame, choice: Choice | None
) -> list[dict[str, Any]]:
    """Reliability on left-out families: raw, Platt and isotonic, each fitted without them."""
    from models.stats.calibration import logit

    rows_out: list[dict[str, Any]] = []
    column = "split"
    if choice is None:
        return rows_out
    for model in choice.merits:
        mine = _of(predictions, "family", model).sort("row")
        parts: dict[str, list[NDArray[np.float64]]] = {"raw": [], "platt": [], "isotonic": []}
        truth = []
        for family, plan in choice.outer.items():
            part = mine.filter(pl.col(column) == family)
            p, y = part["probability"].to_numpy(), table.y[part["row"].to_numpy()]
            settings = plan.verdicts[model]
            rest = mine.filter(pl.col(column) != family)
            curve = isotonic(logit(rest["probability"]), table.y[rest["row"].to_numpy()])
            parts["raw"].append(p)
            parts["platt"].append(sigmoid(settings.slope * logit(p) + settings.offset))
            parts["isotonic"].append(apply_isotonic(curve, logit(p)))
            truth.append(y)
        for kind, values in parts.items():
            if values:
                figures = reliability(np.concatenate(values), np.concatenate(truth))
                rows_out.append({"model": model, "kind": kind, **figures})
    return rows_out


def honest_verdicts(
    table: Windows, predictions: pl.DataFrame, choice: Choice | None, model: str | None
) -> dict[str, Any]:
    """Coverage and accuracy on left-out families with verdicts settled without them.

    Parameters
    ----------
    table, predictions
        The data and what was predicted.
    choice : Choice or None
        Result of `models.sbd.train.selection.choose`; None where there were too few families.
    model : str, optional
        A candidate; by default the one chosen anew without each family.

    Returns
    -------
    dict
        ``window``, ``connection`` (intervals), ``coverage``, ``confusion``, ``chosen``.
    """
    states, probabilities, rows, chosen, most = [], [], [], {}, np.inf
    for family, plan in ({} if choice is None else choice.outer).items():
        name = model or plan.chosen
        chosen[family] = name
        part = _of(predictions, "family", name).filter(pl.col("split") == family).sort("row")
        row, p = part["row"].to_numpy(), part["probability"].to_numpy()
        rows.append(row)
        probabilities.append(p)
        states.append(connection_state(p, table.group[row], plan.verdicts[name]))
        most = min(most, plan.verdicts[name].most)
    if not rows:
        return {}
    row, state = np.concatenate(rows), np.concatenate(states)
    p = np.concatenate(probabilities)
    y, group = table.y[row], table.group[row]
    last = last_of_each(group)
    hit = (p > THRESHOLD) == (y == 1)
    final = (state[last] >= 0) == (y[last] == 1)
    return {
        "chosen": chosen,
        "window": by_connection(hit, group),
        "accumulated_window": by_connection((state >= 0) == (y == 1), group),
        "connection": by_connection(final, group[last]),
        # A state that is bounded is never as sure as higher levels ask.
        "coverage": coverage(state, y, group, [p for p in LEVELS if p <= sigmoid(most) + 1e-9]),
        "confusion": confusion((p > THRESHOLD).astype(np.int64), y),
    }


def scores(
    table: Windows,
    predictions: pl.DataFrame,
    protocols: Sequence[str],
    verdicts: Mapping[str, VerdictSettings],
    params: Params,
) -> dict[str, dict[str, Any]]:
    """``model -> protocol -> score`` with confusion and calibration, pooled over splits."""
    found: dict[str, dict[str, Any]] = {}
    for model in predictions["model"].unique(maintain_order=True):
        for protocol in protocols:
            mine = _of(predictions, protocol, model)
            # A row may be tested by several shuffle splits: the first one that did counts.
            mine = mine.unique("row", keep="first", maintain_order=True).sort("row")
            if mine.is_empty():
                continue
            mask = np.zeros(len(table), dtype=np.bool_)
            mask[mine["row"].to_numpy()] = True
            found.setdefault(model, {})[protocol] = score(
                table.take(mask),
                mine["probability"].to_numpy(),
                verdicts.get(model, PLAIN),
                (),
                params.confidence,
                params.bootstrap,
                params.seed,
            )
    return found


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _both(
    hit: NDArray[np.bool_],
    final: NDArray[np.bool_],
    group: NDArray[np.int64],
    last: NDArray[np.int64],
    params: Params,
) -> dict[str, Any]:
    return {
        "window": by_connection(hit, group, params.confidence, params.bootstrap),
        "connection": by_connection(final, group[last], params.confidence, params.bootstrap),
        "windows": int(hit.size),
        "connections": int(final.size),
    }
