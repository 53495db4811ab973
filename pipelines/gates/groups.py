"""The groups gate: the candidate must not be worse than the champion for any group of users.

A group is one value of an attribute column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from data.errors import unknown_name
from data.strict import Strict
from pipelines.gates import Finding

if TYPE_CHECKING:
    from pipelines.gates.comparison import Comparison


class Settings(Strict):
    """Settings under ``promotion.gates.groups``.

    Attributes
    ----------
    margin : float
        Loss of accuracy per window that is let pass; for families whose worth is no share, in units
        of a typical worth (:class:`models.judged.Paired`).
    min_windows : int
        Values with fewer windows, or whatever the family counts, aren't judged.
    columns : tuple of str
        Attribute columns; if empty, all columns of the table.
    """

    margin: float = Field(0.03, ge=0, le=1)
    min_windows: int = Field(30, ge=1, le=1_000_000_000)
    columns: tuple[str, ...] = ()


def check(comparison: Comparison, settings: Settings) -> Finding:
    """Refuse a loss beyond the margin whose paired 95 % interval leaves zero out.

    With many values some lose by chance: the interval keeps those from deciding.
    """
    pairing = comparison.pairing
    for column in settings.columns:
        if column not in pairing.columns:
            raise unknown_name("column of promotion.gates.groups", column, pairing.columns)
    if comparison.champion is None:
        return Finding(None, "no champion to compare with")
    judged, worse = 0, []
    leading = pairing.quantities[pairing.leading]
    evidence: dict[str, Any] = {}
    for column in settings.columns or pairing.columns:
        values = pairing.columns[column]
        named = np.unique(values[values != ""])
        # One value alone is the whole test set over again.
        for value in named if len(np.unique(values)) > 1 else ():
            mine = values == value
            if mine.sum() < settings.min_windows:
                continue
            judged += 1
            figures = leading.where(mine).figures()
            lost = figures["difference"]
            evidence[f"{column}={value}"] = figures
            if lost["mean"] < -settings.margin * leading.unit and lost["high"] < 0:
                worse.append(f"{column} = {value} {lost['mean']:+.3f}")
    if worse:
        return Finding(False, f"worse for {', '.join(worse)}", evidence)
    return Finding(True, f"{judged} groups, none worse by more than {settings.margin:g}", evidence)
