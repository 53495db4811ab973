"""Show how models trained here compare with the released ones (``cczoo zoo reproduced``)."""

from __future__ import annotations

from pipelines.reporting.inputs import Inputs
from pipelines.reporting.markup import Column, code, paragraph, table

FORMS = {"same": "identical", "differs": "differs", "": None}


def reproduction(inputs: Inputs) -> str:
    """Table with a row per released model."""
    found = inputs.reproduction()
    rows = [
        [
            code(row.name),
            row.version,
            row.text,
            FORMS[row.form] if row.verdict != "identical" else "identical",
            row.differing,
            row.answers,
            ", ".join(row.files),
        ]
        for row in found
    ]
    columns = [
        Column("model", number=False),
        Column("released version"),
        Column("trained here", number=False),
        Column("integer form", number=False),
        Column("other verdicts"),
        Column("of"),
        Column("files that differ", number=False),
    ]
    same = sum(row.verdict == "identical" for row in found)
    equal = sum(row.verdict == "equal" for row in found)
    return table(columns, rows, "Models trained here beside the released ones") + paragraph(
        f"Of {len(found)} released models {same} came out identical and {equal} equal within the "
        "limits of docs/zoo.md, which says what is compared."
    )
