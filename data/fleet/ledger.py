"""The rows of a store that say which logs it has taken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from data.fleet.files import groups
from data.fleet.layout import INTAKE, KIND, SOURCE_KIND
from data.fleet.table import File, Table

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("source", INTAKE, "content", "unit", "stamp", "context")


def rows(
    table: Table, columns: Sequence[str] = COLUMNS, **partition: str
) -> Iterator[pl.DataFrame]:
    """Rows of logs, file by file, with the partition's columns."""
    import polars as pl

    for file in table.files(**{KIND: SOURCE_KIND, **partition}):
        values = {name: value for name, value in file.values.items() if name != KIND}
        for frame in _read(table.address, file, tuple(columns)):
            yield frame.with_columns(
                *(pl.lit(value, pl.String).alias(name) for name, value in values.items()),
            )


@lru_cache(maxsize=4096)
def _read(place: str, file: File, columns: tuple[str, ...]) -> list[pl.DataFrame]:
    """Rows of a small file, which never changes; those of a large one come from several calls."""
    import polars as pl

    found = [pl.from_arrow(group) for group in groups(place, file, columns)]
    return [frame for frame in found if isinstance(frame, pl.DataFrame)]


def matching(
    table: Table, names: Collection[str] = (), contents: Collection[str] = ()
) -> pl.DataFrame:
    """Rows of the logs that have one of some names or contents; see `COLUMNS`."""
    import polars as pl

    by_name = pl.Series(list(names), dtype=pl.String).implode()
    by_content = pl.Series(list(contents), dtype=pl.String).implode()
    found = [
        frame.filter(pl.col("source").is_in(by_name) | pl.col("content").is_in(by_content))
        for frame in rows(table)
    ]
    empty = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
    return pl.concat([empty, *found], how="diagonal_relaxed")
