"""Parquet files of a table are written and read a group of rows at a time, whatever their size."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import UserError
from data.fleet.address import PART_BYTES, below, filesystem, readable
from data.fleet.table import File

GROUP_BYTES = 8 << 20
"""Bytes of a group of rows in memory: what a reader takes at once."""
FILE_BYTES = 128 << 20
"""A file of more is closed, and the next one begun."""
MOST_OPEN = 12
"""Files that one process writes at a time; the oldest is closed for a further one."""
NUMBERS = ("runs.list.element.time_us.list.element", "runs.list.element.value.list.element")
"""Columns whose neighbours differ by little."""

Partition = tuple[tuple[str, str | None], ...]


class Output:
    """Writes rows of any partitions to files of their own.

    Parameters
    ----------
    place : str
        Address of the table.
    name : str, optional
        Name of the only file that is written; by default each gets a new one.
    metadata : mapping, optional
        Goes into each file.
    """

    def __init__(
        self, place: str, name: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> None:
        self._system, self._root = filesystem(place)
        self._name = name
        self._metadata = metadata
        self._open: dict[Partition, _Part] = {}
        self._done: list[File] = []

    def add(self, partition: Partition, rows: Any) -> None:
        """Take the rows of a table, all of one partition and without its columns."""
        if partition not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            path = below(_folder(partition), f"{self._name or uuid.uuid4().hex}.parquet")
            self._open[partition] = _Part(
                self._system, below(self._root, path), path, partition, self._metadata
            )
        part = self._open[partition]
        part.add(rows)
        if part.written > FILE_BYTES and self._name is None:
            self._close(partition)

    def _close(self, partition: Partition) -> None:
        self._done.append(self._open.pop(partition).close())

    def close(self) -> list[File]:
        """Finish all files; returns what was written."""
        for partition in list(self._open):
            self._close(partition)
        return self._done

    def abandon(self) -> None:
        """Delete what was written."""
        for part in self._open.values():
            part.close()
        for path in [*(file.path for file in self._done), *(p.path for p in self._open.values())]:
            self._system.rm_file(below(self._root, path))


class _Part:
    """A file that is being written."""

    def __init__(
        self, system: Any, place: str, path: str, partition: Partition, metadata: Any
    ) -> None:
        self.path = path
        self.written = 0
        self._partition = partition
        self._metadata = metadata
        self._file = system.open(place, "wb", block_size=PART_BYTES)
        self._writer: Any = None
        self._rows = 0
        self._held: list[Any] = []
        self._bytes = 0

    def add(self, rows: Any) -> None:
        self._held.append(rows)
        self._bytes += rows.nbytes
        self._rows += rows.num_rows
        if self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        rows = pa.concat_tables(self._held)
        if self._writer is None:
            self._writer = _writer(self._file, rows.schema, self._metadata)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self.written += self._bytes
        self._held, self._bytes = [], 0

    def close(self) -> File:
        if self._held:
            self._flush()
        self._writer.close()
        size = self._file.tell()
        self._file.close()
        return File(self.path, size, self._rows, self._partition)


def _writer(file: Any, schema: Any, metadata: Mapping[str, str] | None) -> Any:
    nested = "runs" in schema.names
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    texts += ["runs.list.element.variable"] if nested else []
    return pq.ParquetWriter(
        file,
        schema.with_metadata(dict(metadata)) if metadata else schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=texts,
        column_encoding=dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED") if nested else None,
        write_statistics=False,
    )


def _folder(partition: Partition) -> str:
    """Folder of a partition's files, as other readers of Delta expect it."""
    empty = "__HIVE_DEFAULT_PARTITION__"
    return "/".join(
        f"{name}={quote(value, safe='') if value is not None else empty}"
        for name, value in partition
    )


def groups(place: str, file: File, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Rows of a file as Arrow tables, one group at a time.

    Parameters
    ----------
    place : str
        Address of the table.
    file : File
    columns : sequence of str, optional
        Columns to read, of which the file may lack some; all by default.

    Raises
    ------
    UserError
        When the file is gone or can't be read.
    """
    system, root = filesystem(place)
    path = below(root, file.path)
    try:
        with system.open(path, "rb") as opened, pq.ParquetFile(opened) as found:
            names = found.schema_arrow.names
            wanted = None if columns is None else [name for name in columns if name in names]
            for number in range(found.num_row_groups):
                yield found.read_row_group(number, wanted, use_threads=False)
    except OSError as error:
        raise readable(path, error) from None
    except pa.ArrowException as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{path}: damaged: {line}: see `cczoo store check`") from None


def schemas(place: str, files: Iterable[File]) -> dict[Partition, Any]:
    """Arrow schema with all columns that the files of each partition have.

    Those of a day differ where a labels file has got another column in the meantime.
    """
    system, root = filesystem(place)
    found: dict[Partition, Any] = {}
    for file in files:
        with system.open(below(root, file.path), "rb") as opened:
            own = pq.read_schema(opened).remove_metadata()
        known = found.get(file.partition)
        found[file.partition] = own if known is None else pa.unify_schemas([known, own])
    return found


def aligned(rows: Any, schema: Any) -> Any:
    """Rows with the columns of a schema, null where they lack some."""
    if rows.column_names == schema.names:
        return rows
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def metadata_of(place: str, file: File) -> dict[str, str]:
    """Texts that a file says of itself."""
    system, root = filesystem(place)
    with system.open(below(root, file.path), "rb") as opened, pq.ParquetFile(opened) as found:
        kept = found.schema_arrow.metadata or {}
    return {name.decode(): value.decode() for name, value in kept.items()}
