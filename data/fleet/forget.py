"""Connections leave a store for good: events, features, and the files that held them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import UserError
from data.fleet import index, layout, select
from data.fleet import table as tables
from data.fleet.address import below, whole
from data.fleet.change import Exchange, commit, rewritten, without
from data.fleet.judgement import FORGOTTEN
from data.fleet.layout import INTAKE, KIND
from data.fleet.table import Table
from data.fleet.where import Where

if TYPE_CHECKING:
    import polars as pl


def meant(store: str, where: Where) -> pl.DataFrame:
    """Rows of the connections that a condition means.

    Raises
    ------
    UserError
        If there are none.
    """
    import polars as pl

    table = select.open_logs(store)
    columns = [*select.known_columns(table), INTAKE]
    parts = [
        frame.select(name for name in columns if name in frame.columns)
        for _, frame in select.rows(table, where, columns)
    ]
    found = pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()
    if found.is_empty():
        raise UserError(f"{store}: no connection fits --where {where.text!r}")
    return found


@dataclass(frozen=True)
class Forgotten:
    """The rows of what was forgotten, as long as the command runs; counts of files and rows."""

    rows: pl.DataFrame
    features: dict[str, int]
    """Table -> how many of its rows went."""
    files: int
    version: int


def forget(store: str, where: Where, features: Mapping[str, str]) -> Forgotten:
    """Remove connections and all that was made of them in the store.

    The logs that they came from stay known by their contents, so that they are never read again.
    Lines of the same logs in the quarantine lose their text: nobody knows whose they are.

    Parameters
    ----------
    store : str
        Address.
    where : Where
        Condition on connections; it can't be empty.
    features : mapping
        Names of the tables of features that a store may have -> their column with the name of the
        connection.

    Raises
    ------
    UserError
        When no connection is meant.
    """
    import polars as pl

    table = select.open_logs(store)
    found = pl.DataFrame()

    def prepare() -> Exchange:
        nonlocal found
        found = meant(store, where)
        return _exchange(table, found)

    commit(table, prepare, "forget")
    index.drop(table)
    files = table.sweep(0)
    rows = {}
    names = pa.array(found["connection"].to_list(), pa.string())
    for name, column in features.items():
        place = below(whole(store), name)
        if tables.exists(place):
            rows[name], swept = _from_features(Table(place), column, names)
            files += swept
    return Forgotten(found, rows, files, table.version)


def _exchange(table: Table, gone: pl.DataFrame) -> Exchange:
    names = pa.array(gone["connection"].to_list(), pa.string())
    intakes = pa.array(sorted(set(gone[INTAKE].to_list())), pa.string())
    by_source = Counter(gone["source"].to_list())

    def stays(rows: Any) -> Any:
        return pc.invert(pc.is_in(rows["connection"], value_set=names))

    def apart(rows: Any) -> Any:
        return pc.invert(pc.is_in(rows[INTAKE], value_set=intakes))

    hit = set(intakes.to_pylist())
    emptied: set[str] = set()

    def account(rows: Any) -> Any:
        found = rows.to_pylist()
        for row in found:
            if row[INTAKE] in hit:
                counts = row["counts"]
                counts["forgotten_connections"] += by_source[row["source"]]
                row["stamp"] = FORGOTTEN
                if counts["forgotten_connections"] == counts["connections"]:
                    emptied.add(row["source"])
                    row |= {"source": f"({FORGOTTEN} {row['content'][:16]})", "unit": ""}
        return pa.Table.from_pylist(found, schema=layout.SOURCE)

    def silenced(rows: Any) -> Any:
        found = rows.to_pylist()
        for row in found:
            if row[INTAKE] in hit:
                row["text"] = f"({FORGOTTEN})"
                if row["source"] in emptied:
                    row["source"] = f"({FORGOTTEN})"
        return pa.Table.from_pylist(found, schema=layout.quarantine_schema())

    def files(kind: str) -> list[tables.File]:
        return table.files(**{KIND: kind})

    place = table.address
    parts = [
        without(place, files(layout.CONNECTION_KIND), ("connection",), stays),
        rewritten(place, files(layout.SOURCE_KIND), (INTAKE,), apart, account),
        rewritten(place, files(layout.QUARANTINE_KIND), (INTAKE,), apart, silenced),
    ]
    return Exchange(
        [file for part in parts for file in part.added],
        [file for part in parts for file in part.removed],
    )


def _from_features(table: Table, column: str, names: Any) -> tuple[int, int]:
    """Rows of features that were dropped, and files that were deleted."""
    before = sum(file.rows for file in table.files())

    def stays(rows: Any) -> Any:
        return pc.invert(pc.is_in(rows[column], value_set=names))

    commit(table, lambda: without(table.address, table.files(), (column,), stays), "forget")
    return before - sum(file.rows for file in table.files()), table.sweep(0)
