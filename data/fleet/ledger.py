"""The rows of a store that say which logs it has taken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from data.fleet import index
from data.fleet.files import groups
from data.fleet.index import COLUMNS, FEW_ROWS
from data.fleet.layout import KIND, SOURCE_KIND
from data.fleet.table import File, Table

if TYPE_CHECKING:
    import polars as pl

MANY = 200
"""Small files whose rows are looked through at once."""


def rows(
    table: Table,
    columns: Sequence[str] = COLUMNS,
    without: Collection[str] = (),
    **partition: str,
) -> Iterator[pl.DataFrame]:
    """Rows of logs with the partition's columns, file by file, some files left out."""
    for file in table.files(**{KIND: SOURCE_KIND, **partition}):
        if file.path in without:
            continue
        if file.rows <= FEW_ROWS:
            yield _few(table.address, file, tuple(columns))
        else:
            yield from _groups(table.address, file, tuple(columns))


@lru_cache(maxsize=1024)
def _few(place: str, file: File, columns: tuple[str, ...]) -> pl.DataFrame:
    """Rows of a small file, which never changes: a run looks at it several times."""
    import polars as pl

    return pl.concat(_groups(place, file, columns))


def _groups(place: str, file: File, columns: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    import polars as pl

    values = {name: value for name, value in file.values.items() if name != KIND}
    for group in groups(place, file, columns):
        frame = pl.from_arrow(group)
        assert isinstance(frame, pl.DataFrame)
        yield frame.with_columns(
            *(pl.lit(value, pl.String).alias(name) for name, value in values.items()),
        )


def matching(
    table: Table, names: Collection[str] = (), contents: Collection[str] = ()
) -> pl.DataFrame:
    """Rows of the logs that have one of some names or contents; see `COLUMNS`."""
    import polars as pl

    by_name = pl.Series(list(names), dtype=pl.String).implode()
    by_content = pl.Series(list(contents), dtype=pl.String).implode()
    condition = pl.col("source").is_in(by_name) | pl.col("content").is_in(by_content)
    known, indexed = index.read(table)
    try:
        found = [frame.filter(condition).drop(index.ORIGIN) for frame in indexed]
    except (OSError, pa.ArrowException):
        known, found = frozenset(), []
    every = rows(table, without=known)
    while some := list(islice(every, MANY)):
        found.append(pl.concat(some, how="diagonal_relaxed").filter(condition))
    empty = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
    return pl.concat([empty, *found], how="diagonal_relaxed")


def follow(table: Table) -> None:
    """Have the index of a store follow what came into it."""
    index.follow(table, lambda file: _few(table.address, file, COLUMNS))


def wrong(table: Table) -> list[str]:
    """What the index of a store says otherwise than the rows themselves."""
    known, indexed = index.read(table)
    try:
        there = {tuple(row) for frame in indexed for row in frame.select(COLUMNS).iter_rows()}
    except (OSError, pa.ArrowException) as error:
        return [f"{index.NAME}: damaged: {error}: delete it"]
    files = [file for file in table.files(**{KIND: SOURCE_KIND}) if file.path in known]
    frames = (_few(table.address, file, COLUMNS) for file in files)
    own = {tuple(row) for frame in frames for row in frame.select(COLUMNS).iter_rows()}
    return [f"{index.NAME}: {len(own ^ there)} rows aren't the logs': delete it"] * (own != there)
