"""Show benchmarks at scale: many groups, a node that dies, and how often drift is found rightly."""

from __future__ import annotations

from typing import Any

from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, paragraph, table

COMMAND = "python benchmarks/run.py"


def many(inputs: Inputs) -> str:
    """Table of time and memory by number of groups, with a worker and a node lost on the way."""
    alone = inputs.benchmark("groups", f"{COMMAND} groups", "runs")
    rows = [_row("this machine", run) for run in alone]
    same = True
    for run in inputs.benchmark("cluster", f"{COMMAND} cluster", "runs"):
        rows.append(_row("this machine", run["alone"]))
        rows.append(_row("two nodes; a worker, then a node killed", run["cluster"]))
        same &= run["same"]
    columns = [
        Column("groups"),
        Column("windows"),
        Column("on", number=False),
        Column("decided"),
        Column("seconds"),
        Column("command", group="peak memory, MB"),
        Column("worker", group="peak memory, MB"),
    ]
    compared = "in every number the same as" if same else "NOT the same as"
    note = paragraph(
        f"Made by {COMMAND} groups cluster, on groups drawn from the lab's windows: times "
        f"and memory, no accuracies. What the disturbed run decided is {compared} what the "
        "undisturbed one did."
    )
    return table(columns, rows, "A model for each of many groups") + note


def drift(inputs: Inputs) -> str:
    """Table of false alarms between random halves, and of conditions left out one by one."""
    found = inputs.benchmark("drift", f"{COMMAND} drift")
    halves = found["halves"]
    rows: list[list[Any]] = [
        [
            f"random halves, {found['trials']} times",
            f"{100 * halves['drift']:.0f} %",
            float(halves["auc"]),
            float(halves["novel"]),
            None,
        ]
    ]
    for row in found["left_out"]:
        answer = "yes" if row["drift"] else "no"
        rows.append(
            [f"{row['left_out']} left out", answer, row["auc"], row["novel"], row["accuracy"]]
        )
    columns = [
        Column("compared with the rest", number=False),
        Column("drift"),
        Column("AUC, old or new"),
        Column("novel share"),
        Column("accuracy there"),
    ]
    note = paragraph(
        f"Made by {COMMAND} drift. Halves are alike, so each drift told between them is a false "
        "alarm; conditions left out are not. Accuracy is the tree's that was trained without them: "
        "drift is not loss, which is why labels, where there are some, decide."
    )
    return table(columns, rows, "Drift: when it is told") + note


def _row(where: str, run: dict[str, Any]) -> list[Any]:
    keys = ("driver_mb", "worker_mb")
    seconds = f"{run['seconds']:.0f}"
    return [run["groups"], run["rows"], where, _decided(run), seconds, *(run[k] for k in keys)]


def _decided(run: dict[str, Any]) -> int:
    return int(run["counts"]["own"] + run["counts"]["pooled"])
