"""What ``cczoo train sbd groups`` writes."""

from __future__ import annotations

from typing import Literal

from data.results import Result, ResultFile
from models.sbd.results.search import Setting
from models.stats.intervals import Interval

COMMAND = "cczoo train sbd groups --by COLUMN"


class LeftOut(Result):
    """Rows that could not be used, and why; see :class:`models.sbd.usable.Dropped`."""

    rows: int
    unlabelled: int
    not_finite: int
    columns: dict[str, int]
    unanswered: int


class Tested(Result):
    """Both final models on a group's rows of the fixed test set."""

    connections: int
    windows: int
    own: Interval
    pooled: Interval
    difference: Interval


class PooledRow(Result):
    """The model for every group whose own model doesn't beat it; accuracy out of sample."""

    registered: str
    connections: int
    windows: int
    pooled: Interval
    settings: dict[str, Setting]


class GroupRow(Result):
    """What was decided for a group, and from what.

    Attributes
    ----------
    group : str
        Its name.
    values : dict
        Column -> value that all its rows have.
    registered : str
        Name of its model in the registry.
    connections, windows : int or None
        That were learned from; None where training failed.
    dropped : LeftOut or None
        The same.
    decision : str
        ``own``, ``pooled`` or ``failed``.
    own, pooled, difference : Interval or None
        Accuracies of both models and own less pooled, on connections left out; None where there
        was too little to compare.
    reason : str
    settings : dict or None
        Of its own model.
    test : Tested or None
        None where the fixed test set has no row of the group.
    """

    group: str
    values: dict[str, str]
    registered: str
    connections: int | None = None
    windows: int | None = None
    dropped: LeftOut | None = None
    decision: Literal["own", "pooled", "failed"]
    own: Interval | None = None
    pooled: Interval | None = None
    difference: Interval | None = None
    reason: str
    settings: dict[str, Setting] | None = None
    test: Tested | None = None


class Counts(Result):
    """Groups by decision."""

    own: int
    pooled: int
    failed: int


class Grouped(Result):
    """``groups.json``: everything that was decided, with its numbers."""

    model: str
    classifier: str
    family: str
    columns: tuple[str, ...]
    features: tuple[str, ...]
    data_hash: str
    confidence: float
    pooled: PooledRow
    rows: int
    rows_without_group: int
    dropped: LeftOut
    counts: Counts
    resumed: int
    groups: tuple[GroupRow, ...]


class Kept(Result):
    """``results/NAME.json``: a row that is done, and a hash of all that it depends on."""

    key: str
    row: GroupRow | PooledRow


GROUPS = ResultFile("groups.json", Grouped, COMMAND)
KEPT = ResultFile("results/NAME.json", Kept, COMMAND)
