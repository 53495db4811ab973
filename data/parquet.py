"""Tables are written as Parquet batch after batch, so that a large file takes no more memory."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from arro3.core import (
    Array,
    DataType,
    Field,
    RecordBatch,
    RecordBatchReader,
    Schema,
    list_array,
    struct_array,
)
from arro3.io import write_parquet
from numpy.typing import NDArray

from data.schema import CONNECTIONS, EVENTS, SUBFLOW, SUBFLOWS

GROUP_ROWS = 1 << 20
COMPRESSION = "zstd(1)"


def write(
    path: Path, schema: Schema, batches: Iterable[RecordBatch], group_rows: int = GROUP_ROWS
) -> None:
    """Write batches as they come.

    Parameters
    ----------
    path : Path
        File to make.
    schema : Schema
        The schema of all batches.
    batches : iterable of RecordBatch
        One after another in memory.
    group_rows : int, optional
        Rows of a row group.

    Raises
    ------
    OSError
        When the file can't be written.
    Exception
        What ``batches`` raises, as it is.
    """
    with _opened(path) as file:
        write_parquet(
            RecordBatchReader.from_batches(schema, file.watch(batches)),
            file,
            compression=COMPRESSION,
            max_row_group_size=group_rows,
        )


def write_events(path: Path, events: RecordBatch) -> None:
    """Write events in the order of connections, subflows, variables and time.

    Raises
    ------
    OSError
        When the file can't be written.
    """
    with _opened(path) as file:
        write_parquet(
            events,
            file,
            compression=COMPRESSION,
            max_row_group_size=GROUP_ROWS,
            dictionary_enabled=False,
            column_dictionary_enabled={"connection": True, "variable": True},
            # Differences of ascending times and of round-trip times are small numbers.
            column_encoding={"time_us": "delta_binary_packed", "value": "delta_binary_packed"},
        )


def write_connections(path: Path, rows: list[dict[str, Any]], extra: Iterable[str] = ()) -> None:
    """Write rows of `data.schema.CONNECTIONS`.

    Parameters
    ----------
    path : Path
        File to make.
    rows : list of dict
        What a row lacks is null.
    extra : iterable of str
        Names of further columns, which hold texts.

    Raises
    ------
    OSError
        When the file can't be written.
    """
    schema = CONNECTIONS
    for name in extra:
        schema = schema.append(Field(name, DataType.utf8()))
    columns = [
        _subflows(rows)
        if name == "subflows"
        else Array([row.get(name) for row in rows], schema.field(name).type)
        for name in schema.names
    ]
    write(path, schema, [RecordBatch.from_arrays(columns, schema=schema)])


def events(
    connection: Array,
    subflow: NDArray[np.int16],
    time_us: NDArray[np.int64],
    variable: Array,
    value: NDArray[np.int64],
) -> RecordBatch:
    """Events as `data.schema.EVENTS`; connection and variable by `coded`."""
    numbers = (Array.from_numpy(column) for column in (subflow, time_us, value))
    number, time, what = numbers
    return RecordBatch.from_arrays([connection, number, time, variable, what], schema=EVENTS)


def coded(texts: list[str], code: NDArray[np.int32], key: DataType) -> Array:
    """Texts by their numbers: `texts` once, and each row's place in it as `key`."""
    kind = DataType.dictionary(key, DataType.utf8())
    return Array(texts, DataType.utf8()).cast(kind).take(Array.from_numpy(code))


def _subflows(rows: list[dict[str, Any]]) -> Array:
    flat = [subflow for row in rows for subflow in row["subflows"]]
    ends = np.cumsum([0, *(len(row["subflows"]) for row in rows)])
    columns = [Array([subflow[field.name] for subflow in flat], field.type) for field in SUBFLOW]
    entries = struct_array(columns, fields=SUBFLOW)
    return list_array(Array.from_numpy(ends.astype(np.int32)), entries, type=SUBFLOWS)


class _File(io.FileIO):
    """A file that keeps what the system refuses: the library would end the process with it."""

    failed: Exception | None = None

    def write(self, data: Any, /) -> int:
        if self.failed is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failed = error
        return len(data)

    def watch(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Keep what the batches raise, too: the library would pass on its text alone."""
        try:
            yield from batches
        except Exception as error:
            self.failed = self.failed or error
            raise


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    """Give a file for the library to write to, and raise what it kept, or a signal, thereafter."""
    with _File(path, "wb") as file, _later(signal.SIGINT), _later(signal.SIGTERM):
        try:
            yield file
        except Exception:
            if file.failed is None:
                raise
    if file.failed is not None:
        raise file.failed


@contextmanager
def _later(number: signal.Signals) -> Iterator[None]:
    """Hold a signal back: what its handler raised inside the library would be a panic there."""
    handler = signal.getsignal(number)
    # Python runs handlers in the main thread only; default actions run no Python at all.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[int] = []
    try:
        signal.signal(number, lambda which, _: came.append(which))
        yield
    finally:
        signal.signal(number, handler)
        if came:
            signal.raise_signal(number)
