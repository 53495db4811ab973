"""Section "features and hyperparameters": mutual information and the curves of the grid search."""

from __future__ import annotations

from typing import Any

import polars as pl

from models.sbd.results.search import BEST, MI
from pipelines.reporting import figures
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, bar, code, details, figure, paragraph, table
from pipelines.reporting.sbd.paper import MUTUAL_INFORMATION

PANELS = (
    ("decision-tree", "depth", "decision tree", "maximum depth"),
    ("random-forest", "depth", "random forest", "maximum depth"),
    ("svm-linear", "c", "SVM, linear", "C"),
    ("svm-rbf", "c", "SVM, RBF", "C"),
    ("svm-rbf", "gamma", "SVM, RBF", "γ"),
    ("logistic-regression", "c", "logistic regression", "C"),
)
"""Fig. 6 (a) to (f): model, hyperparameter, title, label of the axis."""


def information(inputs: Inputs) -> str:
    """Counterpart of the paper's Table 3 for its 18 features."""
    ranked = inputs.table(MI).ranking["smartsbd"]
    largest = max(row.mi for row in ranked)
    rows: list[list[Any]] = []
    for row in ranked:
        mi, rank = MUTUAL_INFORMATION.get(row.feature, (None, None))
        rows.append(
            [
                row.rank,
                code(row.feature),
                bar(row.mi, largest, f"{row.mi:.4f}"),
                f"{row.low:.4f}–{row.high:.4f}",
                None if mi is None else f"{mi:.4f}",
                rank,
            ]
        )
    columns = [
        Column("rank"),
        Column("feature", number=False),
        Column("MI, nats"),
        Column("over seeds"),
        Column("MI", group="paper"),
        Column("rank", group="paper"),
    ]
    top = {row.feature for row in ranked[:8]}
    theirs = {name for name, (_, rank) in MUTUAL_INFORMATION.items() if rank <= 8}
    return table(
        columns, rows, "Mutual information with the label, the 18 features (Table 3)"
    ) + paragraph(
        f"{len(top & theirs)} of our first eight are among the paper's first eight. As there, "
        "features with the throughput in them are left out of every subset: they tell the set-up "
        "and the congestion control apart rather than the bottleneck."
    )


def information_plus(inputs: Inputs) -> str:
    """Counterpart of the paper's Table 3 for the scale-free features."""
    ranked = inputs.table(MI).ranking.get("smartsbd-plus", ())
    if not ranked:
        return ""
    largest = max(row.mi for row in ranked)
    rows = [
        [
            row.rank,
            code(row.feature),
            bar(row.mi, largest, f"{row.mi:.4f}"),
            f"{row.low:.4f}–{row.high:.4f}",
        ]
        for row in ranked
    ]
    columns = [
        Column("rank"),
        Column("feature", number=False),
        Column("MI, nats"),
        Column("over seeds"),
    ]
    return details(f"The {len(rows)} scale-free features of smartsbd-plus", table(columns, rows))


def curves(inputs: Inputs) -> str:
    """Counterpart of the paper's Fig. 6: one line per top-k subset."""
    from matplotlib import colormaps, pyplot
    from matplotlib.lines import Line2D

    best = best_values(inputs.search)
    sizes = inputs.search["k"].unique().sort().to_list()
    shades = [
        colormaps["viridis"](0.15 + 0.7 * i / max(1, len(sizes) - 1)) for i in range(len(sizes))
    ]
    with figures.style():
        fig, axes = pyplot.subplots(2, 3, figsize=(9.8, 5.4), sharey=True, layout="constrained")
        for axis, (model, key, title, label) in zip(axes.flat, PANELS, strict=True):
            mine = panel(inputs.search, model, key, best)
            for k, shade in zip(sizes, shades, strict=True):
                line = mine.filter(pl.col("k") == k).sort(key)
                axis.plot(
                    line[key].to_list(),
                    line["accuracy"].to_list(),
                    color=shade,
                    marker=".",
                    markersize=3.5,
                )
            fixed = _fixed(model, key, best)
            axis.set_title(title + (f" ({fixed})" if fixed else ""))
            axis.set_xlabel(label)
            if key == "depth":
                axis.set_xticks(range(1, 16, 2))
            else:
                axis.set_xscale("log")
        for row in axes:
            row[0].set_ylabel("mean accuracy")
        fig.legend(
            handles=[
                Line2D([], [], color=c, label=f"top {k}")
                for k, c in zip(sizes, shades, strict=True)
            ],
            loc="outside lower center",
            ncols=len(sizes),
        )
        text = figures.svg(fig, "fig6", "Grid search: accuracy against each hyperparameter")
    return figure(
        text,
        "Grid search on the four sites, as the paper's Fig. 6: mean accuracy over folds by "
        "connection, one line per subset of the first k features.",
        wide=True,
    )


def chosen(inputs: Inputs) -> str:
    """Table of the hyperparameters that the search has chosen."""
    rows: list[list[Any]] = []
    for model, found in inputs.table(BEST).items():
        settings = ", ".join(
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in found.settings.items()
        )
        rows.append([model, settings, found.accuracy, found.sd])
    columns = [
        Column("model", number=False),
        Column("settings", number=False),
        Column("accuracy"),
        Column("sd over folds"),
    ]
    return table(
        columns, rows, "Hyperparameters chosen: the most regularised within the noise of the best"
    )


def best_values(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Best configuration of each model on the second largest subset, as the paper fixes it."""
    sizes = frame["k"].unique().sort().to_list()
    k = sizes[-2] if len(sizes) > 1 else sizes[-1]
    top = frame.filter(pl.col("k") == k).sort("accuracy", descending=True)
    return {row["model"]: row for row in reversed(list(top.iter_rows(named=True)))}


def panel(
    frame: pl.DataFrame, model: str, key: str, best: dict[str, dict[str, Any]]
) -> pl.DataFrame:
    """Rows of one panel, in which all other hyperparameters are at their best value.

    Parameters
    ----------
    frame : polars.DataFrame
        ``search.csv``.
    model, key : str
        Model, and the hyperparameter on the x axis.
    best : mapping
        Best values, as from `best_values`.
    """
    mine = frame.filter((pl.col("model") == model) & pl.col(key).is_not_null())
    for other in ("c", "gamma", "solver"):
        value = best.get(model, {}).get(other)
        if other != key and other in frame.columns and value is not None:
            mine = mine.filter(pl.col(other) == value)
    return mine


def _fixed(model: str, key: str, best: dict[str, dict[str, Any]]) -> str:
    row = best.get(model, {})
    if model == "svm-rbf":
        other, sign = ("gamma", "γ") if key == "c" else ("c", "C")
        return f"{sign} = {row[other]:g}" if row.get(other) is not None else ""
    return str(row.get("solver") or "")
