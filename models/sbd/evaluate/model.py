"""A classifier's answers to a table of features, and how many of them are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.judged import Figure
from models.sbd.accumulate import verdicts_of
from models.sbd.computed_with import check
from models.sbd.evaluate.scores import score
from models.sbd.rows import load_table
from models.sbd.windows import Windows
from models.store import ZooModel

KINDS = {
    "accuracy": "windows",
    "connection_accuracy": "connections",
    "sb_accuracy": "windows that share a bottleneck",
    "nsb_accuracy": "windows that don't",
}
"""Figure -> what it is a share of."""


def probabilities(
    entry: ZooModel, table: Windows, path: Path, shown: str = ""
) -> NDArray[np.float64]:
    """P(SB) of each window, float64 array [N]; NaN where a feature isn't finite.

    Parameters
    ----------
    entry : ZooModel
    table : Windows
        Rows of ``path``, all of them.
    path : Path
        The table's file, whose settings of windows must be the model's.
    shown : str
        What a message calls the model; its name by default.

    Raises
    ------
    UserError
        When a column is missing, or the features were computed otherwise than the model's.
    """
    missing = [name for name in entry.meta.features if name not in table.frame.columns]
    if missing:
        raise UserError(
            f"{path}: no column {missing[0]!r}, which {shown or entry.meta.name} needs: make the "
            "table with this version's `cczoo features sbd`"
        )
    check(path, entry)
    matrix = table.matrix(entry.meta.features)
    usable = np.isfinite(matrix).all(axis=1)
    found = np.full(len(table), np.nan)
    found[usable] = entry.predict_proba(matrix[usable])
    return found


def figures(entry: ZooModel, data: Path) -> dict[str, Figure]:
    """Accuracies with 95 % intervals over connections, on the rows that can be used.

    Raises
    ------
    UserError
        As :func:`probabilities`, and where no labelled row is left.
    """
    table = load_table(data)
    probability = probabilities(entry, table, data)
    scored = np.isfinite(probability) & (table.y >= 0)
    if not scored.any():
        raise UserError(f"{data}: no labelled row with finite features: give another table")
    verdicts = verdicts_of(entry.meta.calibration, entry.meta.accumulation)
    rows = table.take(scored)
    found = score(rows, probability[scored], verdicts, threshold=entry.meta.threshold)
    counts = {
        "accuracy": found["windows"],
        "connection_accuracy": found["connections"],
        "sb_accuracy": int((rows.y == 1).sum()),
        "nsb_accuracy": int((rows.y == 0).sum()),
    }
    return {
        name: Figure(**found["intervals"][name], count=counts[name], of=of)
        for name, of in KINDS.items()
    }
