"""Rows of many logs in one file, so that looking names up costs little however many nights were.

The file lies beside the table's own and can be deleted at any time: what it lacks is read where it
came from, and what has left the table since is passed over, since no file of a table ever changes.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.fleet.address import below, filesystem, is_url
from data.fleet.layout import INTAKE, KIND, SOURCE_KIND
from data.fleet.table import File, Table

if TYPE_CHECKING:
    import polars as pl

NAME = "_ledger.parquet"
"""Delta passes over names that begin with an underscore."""
FILES = "cczoo.files"
"""Metadata of the file: paths of the table's files whose rows it has."""
ORIGIN = "file"
"""Column with the path of the file that a row is from."""
COLUMNS = ("source", INTAKE, "content", "unit", "stamp", "context")
GROUP_ROWS = 1 << 16
EVERY = 8
"""Files that aren't in it yet, from which on it is written anew."""
FEW_ROWS = 5000
"""Files of more rows are read as well where they are."""


def read(table: Table) -> tuple[frozenset[str], Iterator[pl.DataFrame]]:
    """Paths of files whose rows are there, and the rows of those that the table still has.

    The rows end with `OSError` or `pyarrow.ArrowException` if another process replaces the file
    of an object store meanwhile: the caller then does without.
    """
    try:
        system, root = filesystem(table.address)
        opened = system.open(below(root, NAME), "rb")
        file = pq.ParquetFile(opened)
        known = frozenset(json.loads(file.schema_arrow.metadata[FILES.encode()]))
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return frozenset(), iter(())
    there = frozenset(one.path for one in table.files(**{KIND: SOURCE_KIND}))
    return known & there, _rows(opened, file, known - there)


def _rows(opened: Any, file: Any, gone: frozenset[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    with opened, file:
        for number in range(file.num_row_groups):
            frame = pl.from_arrow(file.read_row_group(number, use_threads=False))
            assert isinstance(frame, pl.DataFrame)
            yield frame.filter(~pl.col(ORIGIN).is_in(list(gone))) if gone else frame


def follow(table: Table, rows_of: Any) -> None:
    """Write the file anew if many of the table's aren't in it yet.

    Parameters
    ----------
    table : Table
    rows_of : callable
        Gives the rows of a file of the table as a polars table.
    """
    small = [f for f in table.files(**{KIND: SOURCE_KIND}) if f.rows <= FEW_ROWS]
    known, rows = read(table)
    if sum(file.path not in known for file in small) < EVERY:
        return
    try:
        _write(table, small, known, rows, rows_of)
    except (OSError, pa.ArrowException):
        drop(table)
    # Something may have been forgotten meanwhile, and would live on in here.
    table.reload()
    there = {file.path for file in table.files(**{KIND: SOURCE_KIND})}
    if any(file.path not in there for file in small):
        drop(table)


def _write(
    table: Table,
    small: Sequence[File],
    known: frozenset[str],
    rows: Iterator[pl.DataFrame],
    rows_of: Any,
) -> None:
    import polars as pl

    columns = [*COLUMNS, *(name for name in table.partition if name != KIND), ORIGIN]
    metadata = {FILES: json.dumps([file.path for file in small])}
    schema = pa.schema([pa.field(name, pa.string()) for name in columns], metadata)
    system, root = filesystem(table.address)
    place = below(root, NAME)
    part = place if is_url(table.address) else below(root, f"_{uuid.uuid4().hex}.part")
    try:
        with (
            system.open(part, "wb") as file,
            pq.ParquetWriter(file, schema, compression="zstd", write_statistics=False) as writer,
        ):
            held: list[pl.DataFrame] = []
            for frame in _all(small, known, rows, rows_of):
                held.append(frame.select(pl.col(name).cast(pl.String) for name in columns))
                if sum(map(len, held)) >= GROUP_ROWS:
                    writer.write_table(pl.concat(held).to_arrow().cast(schema))
                    held = []
            if held:
                writer.write_table(pl.concat(held).to_arrow().cast(schema))
        if part != place:
            os.replace(part, place)
    finally:
        if part != place and os.path.exists(part):
            os.unlink(part)


def _all(
    small: Sequence[File], known: frozenset[str], rows: Iterator[pl.DataFrame], rows_of: Any
) -> Iterator[pl.DataFrame]:
    import polars as pl

    yield from rows
    for file in small:
        if file.path not in known:
            yield rows_of(file).with_columns(pl.lit(file.path, pl.String).alias(ORIGIN))


def drop(table: Table) -> None:
    """Delete the file, so that nothing that was forgotten is left in it."""
    system, root = filesystem(table.address)
    if system.exists(place := below(root, NAME)):
        system.rm_file(place)
