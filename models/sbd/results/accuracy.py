"""Accuracies out of sample that ``cczoo train sbd protocol`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_serializer, model_validator

from data.results import Result, ResultFile
from models.stats.intervals import Interval

STEP = "cczoo train sbd protocol"


class SiteRow(Result):
    """A model on one data set, or on ALL: over shuffle splits of connections.

    ``both``, ``sb`` and ``nsb`` are accuracies per window, of both classes and of each.
    """

    dataset: str
    model: str
    both: Interval
    sb: Interval
    nsb: Interval
    connection: Interval


class RuleRow(Result):
    """A rule on one data set, or on the sites together (ALL).

    ``both``, ``sb`` and ``nsb`` are shares of time in the right state, as the paper counts;
    ``window`` and ``connection`` are accuracies of the verdict that most time goes to.
    """

    dataset: str
    rule: str
    both: Interval
    sb: Interval
    nsb: Interval
    window: Interval
    connection: Interval
    windows: int
    connections: int


class ValueRow(Result):
    """A model on the rows that have one value of an attribute, or on all rows.

    Attributes
    ----------
    model : str
    column : str
        The attribute: the file has it as the name of a key.
    value : str
        Its value; ALL for all rows together.
    window, connection : Interval
        Accuracies.
    windows, connections : int
        How many these are of.
    """

    model: str
    column: str
    value: str
    window: Interval
    connection: Interval
    windows: int
    connections: int

    @model_validator(mode="before")
    @classmethod
    def _named(cls, tree: Any) -> Any:
        """Take the one key that isn't a field for the attribute."""
        if not isinstance(tree, Mapping):
            raise ValueError("a mapping was expected")
        others = [key for key in tree if key not in cls.model_fields]
        if len(others) != 1 or "column" in tree or "value" in tree:
            raise ValueError("one key was expected that names the attribute")
        (column,) = others
        rest = {key: value for key, value in tree.items() if key != column}
        return {**rest, "column": column, "value": tree[column]}

    @model_serializer
    def _told(self) -> dict[str, Any]:
        """The row as it stands in the file."""
        return {
            "model": self.model,
            self.column: self.value,
            "window": self.window,
            "connection": self.connection,
            "windows": self.windows,
            "connections": self.connections,
        }


class Cases(Result):
    """``table6.json``: the unseen cases, trained on the sites, and on the campaign too."""

    unseen: tuple[ValueRow, ...]
    unseen_varied: tuple[ValueRow, ...] = Field(alias="unseen-varied")


TABLE5 = ResultFile("table5.json", tuple[SiteRow, ...], STEP)
TABLE6 = ResultFile("table6.json", Cases, STEP)
MIXED = ResultFile("mixed.json", tuple[SiteRow, ...], STEP)
TRANSFER = ResultFile("transfer.json", tuple[ValueRow, ...], STEP)
RULES = ResultFile("rules.json", tuple[RuleRow, ...], STEP + " --events DIR")
