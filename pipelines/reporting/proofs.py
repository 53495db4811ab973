"""Show every model of the zoo on every target, as ``make bench`` has proved and timed it."""

from __future__ import annotations

from typing import Any

from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, paragraph, table

COMMAND = "make bench"


def proofs(inputs: Inputs) -> str:
    """Table of vectors, mismatches and cost per model and target."""
    found = inputs.benchmark("prove", COMMAND, "rows")
    columns = [
        Column("model", number=False),
        Column("target", number=False),
        Column("vectors"),
        Column("mismatches"),
        Column("ns per decision"),
        Column("bytes"),
        Column("", number=False),
    ]
    wrong = sum(row.get("mismatches", 0) for row in found)
    note = paragraph(
        f"{len(found)} bundles, {wrong} mismatches. Made by {COMMAND} (or cczoo zoo prove): "
        "integer targets must give the model's class and score on every vector, ONNX its "
        "probability within the tolerance in the certificate; eBPF ran inside the kernel."
    )
    return table(columns, [_row(row) for row in found], "Every model on every target") + note


def _row(row: dict[str, Any]) -> list[Any]:
    ns = row.get("ns_per_decision")
    return [
        row["model"],
        row["target"],
        row.get("vectors"),
        row.get("mismatches"),
        None if ns is None else f"{ns:.3g}" if ns < 1000 else f"{ns:.0f}",
        row.get("object_bytes"),
        "" if row["ok"] else row.get("why", "mismatches"),
    ]
