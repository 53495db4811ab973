"""The rows of a store that say which logs it has taken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from data.fleet.files import groups
from data.fleet.layout import INTAKE, KIND, SOURCE_KIND
from data.fleet.table import File, Table

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("source", INTAKE, "content", "unit", "stamp", "context")


FEW = 5000
"""Rows of a file that is kept in memory."""
MANY = 200
"""Small files whose rows are looked through at once."""


def rows(
    table: Table, columns: Sequence[str] = COLUMNS, **partition: str
) -> Iterator[pl.DataFrame]:
    """Rows of logs, file by file, with the partition's columns."""
    for file in table.files(**{KIND: SOURCE_KIND, **partition}):
        if file.rows <= FEW:
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
    found = []
    every = rows(table)
    while some := list(islice(every, MANY)):
        found.append(pl.concat(some, how="diagonal_relaxed").filter(condition))
    empty = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
    return pl.concat([empty, *found], how="diagonal_relaxed")
