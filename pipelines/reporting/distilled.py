"""Show what trees that were distilled from trained policies keep of their teachers' returns."""

from __future__ import annotations

from typing import Any

from pipelines.reporting.inputs import Inputs, MissingInput
from pipelines.reporting.markup import Column, figure, paragraph, table

COMMAND = "cczoo distill NAME --beside"


def trees(inputs: Inputs) -> str:
    """A table of the zoo's trees beside their teachers, and the returns of smaller ones."""
    from pipelines.studies import distillation

    found = distillation.students(inputs.root / "models" / "zoo")
    if not found:
        raise MissingInput(inputs.root / "models" / "zoo", COMMAND)
    made = paragraph(
        "A trained policy as one decision tree of integers: return against its teacher's in the "
        "same episodes of the test, with 95 % intervals. The bar: the lower end is at least -1 %, "
        "at most 255 leaves, 10 comparisons and 40 ns a decision, a thousandth of what its "
        "teacher's ONNX file takes. docs/distill.md has students of other families beside them."
    )
    rows: list[list[Any]] = []
    drawings = []
    for model in found:
        result = model.read_json("metrics.json")["distilled"]
        ns, ratio = distillation.times(model.meta.name)
        missed = distillation.missed(result, ns, ratio)
        rows.append(
            [model.meta.name, result["teacher"], str(result["leaves"]), str(result["depth"]),
             distillation.interval(result["relative_return"]),
             "" if ns is None else f"{ns:.3g}", ", ".join(missed) or "none"]
        )  # fmt: skip
        if result["curve"]:
            svg = distillation.drawing(model.meta.name, result["curve"], standalone=False)
            drawings.append(figure(svg, f"{model.meta.name}: return by leaves"))
    columns = [
        Column("tree", number=False),
        Column("teacher", number=False),
        Column("leaves"),
        Column("depth"),
        Column("against its teacher"),
        Column("C, ns"),
        Column("misses of the bar", number=False),
    ]
    return made + table(columns, rows, "Trees of the zoo beside their teachers") + "".join(drawings)
