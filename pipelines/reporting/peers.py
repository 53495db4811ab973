"""Compare cczoo's code with other exporters' for the same trees, as ``make bench`` measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, code, paragraph, strong, table

COMMAND = "make bench"


def exporters(inputs: Inputs) -> str:
    """Table of speed, size and mistakes of every exporter on every model of the benchmark."""
    found = inputs.benchmark("exporters", COMMAND)
    rows: list[list[Any]] = []
    for title, model in found["models"].items():
        counts = f"{model['trees']} tree{'s' if model['trees'] > 1 else ''}"
        rows.append([f"{title}: {counts}, {model['nodes']} nodes"])
        ours = model["ratios"]["ours"]
        for name, one in model["results"].items():
            rows.append(_row(name, one, model["ratios"], name == ours))
    columns = [
        Column("exporter", number=False),
        Column("ns per decision"),
        Column("times ours", group="relative to our faster layout"),
        Column("size, times ours", group="relative to our faster layout"),
        Column("bytes"),
        Column("random rows", group="wrong answers"),
        Column("at thresholds", group="wrong answers"),
    ]
    peers = ", ".join(p for p in found["peers"] if not p.startswith(("numpy", "scikit-learn")))
    note = paragraph(
        f"Made by {COMMAND} ({peers}): all compiled code with {' '.join(found['flags'])}, the same "
        "driver and the same rows, which fall into all leaves evenly and are more than a branch "
        "predictor learns; the shortest of interleaved rounds counts. Wrong is what differs from "
        "the source model on integers: random ones, and every threshold at −1, 0, +1. Calls "
        "follow each other at once, so that their steps overlap where the code lets them. Ratios "
        "travel to other machines, nanoseconds don't. A call of ONNX Runtime or scikit-learn from "
        "Python is mostly the call itself; with 4096 rows at once it is the model."
    )
    return table(columns, rows, "Exporters on the same trees in one run") + note


def _row(name: str, one: Mapping[str, Any], ratios: Mapping[str, Any], fastest: bool) -> list[Any]:
    shown: Any = strong(code(name)) if fastest else name
    if "error" in one:
        return [shown, one["error"], None, None, None, None, None]
    return [
        shown,
        f"{one['ns']:.3g}" if one["ns"] < 1000 else f"{one['ns']:.0f}",
        f"{ratios['time'][name]:.2f}",
        f"{ratios['bytes'][name]:.2f}" if name in ratios["bytes"] else None,
        one.get("bytes"),
        f"{one['random_wrong']} of {one['random_rows']}",
        f"{one['threshold_wrong']} of {one['threshold_rows']}",
    ]
