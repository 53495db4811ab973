"""AutoML beside Table 5: rows for its table, and what was spent."""

from __future__ import annotations

import json
from typing import Any

from pipelines.reporting import names
from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, Html, paragraph, stacked, table

COMMAND = "cczoo train sbd auto-protocol"


def kept(inputs: Inputs) -> dict[str, Any]:
    """What the command printed when it was last run; without rows where it never was."""
    path = inputs.root / "benchmarks" / "results" / "automl.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    return {"rows": found.get("rows", []), "runs": found.get("runs", {})}


def spent(inputs: Inputs) -> str:
    """Budget, cost and paired differences of each backend; empty where there is none."""
    runs = kept(inputs)["runs"]
    if not runs:
        return ""
    peers = names.order({peer for run in runs.values() for peer in run["differences"]})
    rows = []
    for backend, run in runs.items():
        limit = f"{run['seconds']:g} s" + (f", {run['trials']} trials" if run["trials"] else "")
        done = run["splits"]
        row: list[Any] = [
            names.scheme(backend),
            f"{done}",
            limit,
            f"{sum(run['evaluated']) / done:.0f}",
            f"{sum(run['cpu_s']) / done:.0f}",
        ]
        for peer in peers:
            row.append(_signed(run["differences"].get(peer)))
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


def _signed(found: Any) -> Html | None:
    if not found or found["mean"] is None:
        return None
    limits = "" if found["low"] is None else f"{found['low']:+.3f} to {found['high']:+.3f}"
    return stacked(f"{found['mean']:+.3f}", limits)
