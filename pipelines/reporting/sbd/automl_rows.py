"""AutoML in the report: its rows beside Table 5, and what the search has spent."""

from __future__ import annotations

from typing import Any

from models.sbd.results.automl import AUTO_TABLE5, Table5
from models.stats.intervals import Interval
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, Html, paragraph, stacked, table
from pipelines.reporting.sbd import names


def kept(inputs: Inputs) -> Table5:
    """Results of the command's last run; without rows if it was never run."""
    path = inputs.root / "benchmarks" / "results" / AUTO_TABLE5.name
    return inputs.optional(AUTO_TABLE5, path) or Table5(paper={}, runs={}, rows=())


def spent(inputs: Inputs) -> str:
    """Budget, cost and paired differences of each backend; empty if there is none."""
    runs = kept(inputs).runs
    if not runs:
        return ""
    peers = names.order({peer for run in runs.values() for peer in run.differences})
    rows = []
    for backend, run in runs.items():
        limit = f"{run.seconds:g} s" + (f", {run.trials} trials" if run.trials else "")
        done = run.splits
        row: list[Any] = [
            names.scheme(backend),
            f"{done}",
            limit,
            f"{sum(run.evaluated) / done:.0f}",
            f"{sum(run.cpu_s) / done:.0f}",
        ]
        for peer in peers:
            row.append(_signed(run.differences.get(peer)))
        rows.append(row)
    columns = [
        Column("search", number=False),
        Column("splits"),
        Column("budget of each", number=False),
        Column("configurations"),
        Column("CPU seconds"),
        *(Column(names.scheme(peer), group="accuracy less that of") for peer in peers),
    ]
    return paragraph(
        "AutoML searches all 18 features anew on the training connections of each split; its "
        "accuracy less that of the others is taken on the same windows, with 95 % intervals over "
        "splits. The paper gave auto-sklearn 10 hours on 6 cores and found 0.020 more than SVM."
    ) + table(columns, rows, "What AutoML was given and what it gains")


def _signed(found: Interval | None) -> Html | None:
    if found is None or found["mean"] is None:
        return None
    limits = "" if found["low"] is None else f"{found['low']:+.3f} to {found['high']:+.3f}"
    return stacked(f"{found['mean']:+.3f}", limits)
