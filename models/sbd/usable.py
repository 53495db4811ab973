"""Which rows of a features table can be used, and why the others can't."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError
from models.sbd.windows import Windows

SHOWN = 4
"""Columns that a message names; ``--json`` has all."""


@dataclass
class Dropped:
    """Rows that were left out of a table.

    Attributes
    ----------
    rows : int
        Of the table.
    unlabelled : int
        Without a label, where one is needed.
    not_finite : int
        Of the others, those with a missing or infinite feature.
    columns : dict
        Feature -> rows of ``not_finite`` in which it isn't a finite number.
    unanswered : int
        Of the others, those that a rule-based scheme says nothing about.
    """

    rows: int = 0
    unlabelled: int = 0
    not_finite: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    unanswered: int = 0

    def described(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)

    def add(self, other: Dropped) -> None:
        """Count the rows of another part of the same table too."""
        self.rows += other.rows
        self.unlabelled += other.unlabelled
        self.not_finite += other.not_finite
        for name, count in other.columns.items():
            self.columns[name] = self.columns.get(name, 0) + count

    def reasons(self) -> str:
        """Why, for people; empty where nothing was left out."""
        parts = [f"{self.unlabelled} have no label"] if self.unlabelled else []
        if self.not_finite:
            worst = sorted(self.columns.items(), key=lambda item: (-item[1], item[0]))
            named = ", ".join(f"{name} {count}" for name, count in worst[:SHOWN])
            more = f" and {len(worst) - SHOWN} more columns" if len(worst) > SHOWN else ""
            parts.append(f"{self.not_finite} have features that aren't finite ({named}{more})")
        if self.unanswered:
            parts.append(f"for {self.unanswered} the rule finds no answer in the events")
        return ", ".join(parts)

    def line(self, where: str) -> str:
        """One line for people; empty where nothing was left out."""
        count = self.unlabelled + self.not_finite + self.unanswered
        return f"{where}: {count} of {self.rows} rows left out: {self.reasons()}" if count else ""


def usable(
    table: Windows, names: Sequence[str], labelled: bool
) -> tuple[NDArray[np.bool_], Dropped]:
    """Rows whose features are all finite and that have a label, where one is needed.

    Parameters
    ----------
    table : Windows
        N rows.
    names : sequence of str
        Feature columns.
    labelled : bool
        Whether rows without a label are left out.

    Returns
    -------
    mask : ndarray of bool, shape (N,)
    dropped : Dropped
    """
    wanted = table.y >= 0 if labelled else np.full(len(table), True)
    finite = np.isfinite(table.matrix(names))
    mask = wanted & finite.all(axis=1)
    counts = (~finite & wanted[:, None]).sum(axis=0)
    return mask, Dropped(
        len(table),
        int((~wanted).sum()),
        int((wanted & ~mask).sum()),
        {name: int(n) for name, n in zip(names, counts, strict=True) if n},
    )


def without_answer(table: Windows, probability: NDArray[np.float64], labelled: bool) -> Dropped:
    """Rows that a rule-based scheme leaves out: those whose ``probability`` (N,) is NaN."""
    wanted = table.y >= 0 if labelled else np.full(len(table), True)
    silent = int((wanted & np.isnan(probability)).sum())
    return Dropped(len(table), int((~wanted).sum()), unanswered=silent)


def check_unique(table: Windows, where: str) -> None:
    """Refuse windows that are there twice: they would count twice.

    Raises
    ------
    UserError
        With the first of them and how many rows are repeated.
    """
    known = ("source", "connection", "subflow_a", "subflow_b", "window")
    keys = table.frame.select([name for name in known if name in table.frame.columns])
    repeated = keys.filter(~pl.struct(pl.all()).is_first_distinct())
    if repeated.is_empty():
        return
    first = repeated.select(pl.col("connection", "window").cast(pl.String)).row(0)
    raise UserError(
        f"{where}: window {first[1]} of connection {first[0]!r} is there more than once "
        f"({repeated.height} rows repeat an earlier one): drop them, or make the table again"
    )
