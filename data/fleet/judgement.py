"""Logs are judged by name, content and labels: new to the store, changed, or there already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.errors import UserError
from data.fleet import ledger
from data.fleet.table import Table
from data.fleet.units import Log, Unit

if TYPE_CHECKING:
    import polars as pl

FORGOTTEN = "forgotten"
"""Stamp of logs of which connections were forgotten: they are never read again."""
STATUSES = ("new", "replaced", "unchanged", "elsewhere", FORGOTTEN)


@dataclass
class Judgement:
    """Status of each log, names that aren't taken, and intakes of the store that are replaced."""

    status: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)


@dataclass
class Plan:
    """Units to read, in the order of their names, and the number of logs of each status."""

    units: list[Unit]
    statuses: Counter[str]


def judge(mine: Sequence[tuple[str, str, str]], there: pl.DataFrame) -> Judgement:
    """Compare logs with the rows of the store that share a name or a content with them.

    Parameters
    ----------
    mine : sequence of (str, str, str)
        Name, content and context of each log.
    there : polars.DataFrame
        Rows as `data.fleet.ledger.matching` gives them.
    """
    found = Judgement()
    rows = list(there.iter_rows(named=True))
    by_name: dict[str, dict[str, Any]] = {row["source"]: row for row in rows}
    contents = {name: content for name, content, _ in mine}
    # A content whose log is about to be replaced by another one is free.
    held = {
        row["content"]: row
        for row in rows
        if contents.get(row["source"], row["content"]) == row["content"]
    }
    seen: set[str] = set()
    for name, content, context in mine:
        old, other = by_name.get(name), held.get(content)
        if FORGOTTEN in {row["stamp"] for row in (old, other) if row is not None}:
            status = FORGOTTEN
        elif old is not None and (old["content"], old["context"]) == (content, context):
            status = "unchanged"
        elif old is not None:
            status = "replaced"
            found.removed.add(old["intake"])
        elif other is not None or content in seen:
            status = "elsewhere"
        else:
            status = "new"
        seen.add(content)
        found.status[name] = status
        if status not in ("new", "replaced"):
            found.dropped.add(name)
    return found


def plan(logs: Sequence[Log], table: Table, hashed: Callable[[Sequence[Log]], list[Log]]) -> Plan:
    """Choose the logs to read.

    Parameters
    ----------
    logs : sequence of Log
        All that were found, without their contents.
    table : Table
        The store's logs.
    hashed : callable
        Gives logs with their contents.

    Raises
    ------
    UserError
        When a part of what was read together has changed, and the rest isn't there.
    """
    statuses: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
    by_name = {
        row["source"]: row
        for row in ledger.matching(table, {log.name for log in logs}).iter_rows(named=True)
    }
    known: list[Log] = []
    fresh: list[Log] = []
    for log in logs:
        old = by_name.get(log.name)
        same = old is not None and old["stamp"] == log.stamp and old["context"] == log.context
        (known if same else fresh).append(log)
    fresh = hashed(fresh)
    there = ledger.matching(table, {log.name for log in fresh}, {log.content for log in fresh})
    found = judge([(log.name, log.content, log.context) for log in fresh], there)
    statuses["unchanged"] += len(known)
    statuses.update(found.status.values())
    chosen = [log for log in fresh if log.name not in found.dropped]
    units: dict[str, list[Log]] = {log.unit: [] for log in chosen}
    for log in chosen:
        units[log.unit].append(log)
    joint = {key for key in units if key.startswith("key:")}
    if joint:
        again = hashed([log for log in known if log.unit in joint])
        for log in [*again, *(one for one in fresh if one.name in found.dropped)]:
            if log.unit in joint:
                units[log.unit].append(log)
        _check_whole(table, units)
    ordered = sorted(units.items())
    return Plan(
        [Unit(tuple(sorted(own, key=lambda log: log.name))) for _, own in ordered], statuses
    )


def _check_whole(table: Table, units: dict[str, list[Log]]) -> None:
    """Refuse to read a part of a unit whose other logs the store has and this run hasn't."""
    for frame in ledger.rows(table):
        for row in frame.iter_rows(named=True):
            own = units.get(row["unit"] or "")
            if own is not None and row["source"] not in {log.name for log in own}:
                raise UserError(
                    f"{row['source']}: makes one connection with {own[0].name} "
                    "(--connection-key): give all files of it"
                )
