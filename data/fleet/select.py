"""Connections of a store for which a condition holds, read column by column where it can be."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from data.fleet.address import below, whole
from data.fleet.files import groups
from data.fleet.layout import CONNECTION_KIND, FIXED, INTAKE, KIND, LOGS
from data.fleet.runs import connections_of
from data.fleet.table import File, Table
from data.fleet.where import Where
from data.schema import CONNECTIONS
from data.store import Series

if TYPE_CHECKING:
    import polars as pl

UNFIT = ("subflows", "runs")
"""Columns of connections that hold more than one value."""


def open_logs(store: str) -> Table:
    """The table of a store's logs."""
    return Table(below(whole(store), LOGS))


def attributes(table: Table) -> list[str]:
    """Columns of a store that come from labels files: partitions first."""
    return [name for name in table.columns if name not in FIXED]


def known_columns(table: Table) -> list[str]:
    """Columns that a condition may be about."""
    own = [name for name in CONNECTIONS.names if name not in UNFIT]
    parted = [name for name in table.partition if name != KIND]
    return list(dict.fromkeys([*own, *parted, *attributes(table)]))


def rows(table: Table, where: Where, columns: Sequence[str]) -> Iterator[tuple[File, pl.DataFrame]]:
    """Rows of connections for which the condition holds, with some columns, group by group."""
    where.check(known_columns(table))
    for file in where.files(table.files(**{KIND: CONNECTION_KIND})):
        for group in groups(table.address, file, [*columns, *where.columns]):
            frame = with_partition(group, file, where.columns)
            yield file, frame.filter(where.mask(frame))


def fitting(table: Table, where: Where) -> Iterator[tuple[File, Any]]:
    """Groups of whole connections, with their events, for which the condition holds."""
    import pyarrow as pa

    for file in where.files(table.files(**{KIND: CONNECTION_KIND})):
        for group in groups(table.address, file):
            if not where.text:
                yield file, group
                continue
            plain = group.select([n for n in group.column_names if n not in UNFIT])
            kept = where.mask(with_partition(plain, file, where.columns))
            if kept.any():
                yield file, group.filter(pa.array(kept.to_list(), pa.bool_()))


def with_partition(group: Any, file: File, needed: Sequence[str]) -> pl.DataFrame:
    """A group of rows with its partition's columns, and null for needed ones that it lacks."""
    import polars as pl

    frame = pl.from_arrow(group)
    assert isinstance(frame, pl.DataFrame)
    values = {name: value for name, value in file.values.items() if name != KIND}
    frame = frame.with_columns(pl.lit(v, pl.String).alias(name) for name, v in values.items())
    lacking = [name for name in needed if name not in frame.columns]
    return frame.with_columns(pl.lit(None, pl.String).alias(name) for name in lacking)


def connections(
    place: str, file: File, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], Series]]:
    """Connections of one file with their events, a group of rows in memory at a time.

    Parameters
    ----------
    place : str
        Address of the table.
    file : File
    names : sequence of str
        The table's `attributes`.
    """
    values = {name: value for name, value in file.values.items() if name != KIND}
    for group in groups(place, file):
        for row, series in connections_of(group, names):
            yield row | values, series


def fingerprint(table: Table, where: Where) -> tuple[str, int]:
    """Hash of what is selected, and the number of connections.

    It changes with every log that is added, replaced or forgotten in the selection, and with
    nothing else: neither by compacting nor by logs that the condition leaves out.
    """
    count: Counter[str] = Counter()
    for _, frame in rows(table, where, (INTAKE,)):
        count.update(frame[INTAKE].to_list())
    digest = hashlib.sha256()
    for intake, number in sorted(count.items()):
        digest.update(f"{intake} {number}\n".encode())
    return digest.hexdigest()[:32], sum(count.values())
