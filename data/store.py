"""Reading and writing an ingested directory (see ``data.schema``)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from data.errors import UserError
from data.schema import EVENTS, VARIABLES

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int64]
Series = dict[int, dict[str, tuple[Ints, Ints]]]
"""subflow -> variable -> (time_us, value), both int64, times ascending."""

ROW_GROUP_ROWS = 1 << 20
PART_ROWS = 16 << 20
"""A part is closed at the next connection after so many events: readers hold one in memory."""
VARIABLE_NAMES = list(VARIABLES)
RECORD = "ingest.json"
EVENTS_FOLDER = "events/"
"""Is there without any events too."""
_WRITTEN = re.compile(
    r"(ingest\.json|connections\.parquet|quarantine\.parquet|events/part-\d{5}(-\d{2,})?\.parquet)"
)
"""What ingestion and the simulator write; older records and the simulator's list no files."""


def read_report(directory: Path) -> dict[str, Any]:
    """Read ``ingest.json``: the counts of the ingestion.

    Raises
    ------
    UserError
        When the directory isn't an ingested one.
    """
    path = directory / RECORD
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(
            f"{directory}: not an ingested directory: make one with "
            f"`cczoo ingest LOGS --out {directory}`"
        ) from None
    return report


def own_files(directory: Path) -> set[str]:
    """Names (relative, with /) of what an ingested directory's record lists: `data.place.Own`.

    Returns
    -------
    set of str
        Empty when there is no readable record.
    """
    try:
        record = json.loads((directory / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    if not isinstance(record, dict) or "lines_read" not in record:
        return set()
    listed = record.get("files")
    if isinstance(listed, list):
        # A record can be forged: no other names than these were ever written.
        names = {name for name in listed if isinstance(name, str) and _WRITTEN.fullmatch(name)}
        return {RECORD, EVENTS_FOLDER, *names}
    there = (path.relative_to(directory).as_posix() for path in directory.rglob("*"))
    return {EVENTS_FOLDER, *(name for name in there if _WRITTEN.fullmatch(name))}


def read_connections(directory: Path | str) -> pl.DataFrame:
    """Read ``connections.parquet``: one row per connection, the labels' columns last.

    Raises
    ------
    UserError
        When the directory isn't an ingested one.
    """
    import polars as pl

    directory = Path(directory)
    read_report(directory)
    return pl.read_parquet(directory / "connections.parquet")


def iter_connections(
    directory: Path | str, connections: Collection[str] | None = None
) -> Iterator[tuple[dict[str, Any], Series]]:
    """Iterate over connections with their events, one part file in memory at a time.

    Parameters
    ----------
    directory : Path or str
        An ingested directory.
    connections : collection of str, optional
        Names to restrict to; all by default.

    Yields
    ------
    dict
        The connection's row of ``connections.parquet``.
    dict
        subflow -> variable -> (time_us int64 [n], value int64 [n]), times ascending (units as in
        ``data.schema.VARIABLES``). A variable without events is absent.

    Raises
    ------
    UserError
        When the directory isn't an ingested one.
    """
    directory = Path(directory)
    wanted = None if connections is None else set(connections)
    rows = {row["connection"]: row for row in read_connections(directory).iter_rows(named=True)}
    for path in sorted((directory / "events").glob("part-*.parquet")):
        if wanted is not None and not wanted & _names_in(path):
            continue
        for name, series in _read_part(path, wanted):
            yield rows[name], series


def _names_in(path: Path) -> set[str]:
    column = pq.read_table(path, columns=["connection"]).column("connection").unique()
    return set(column.to_pylist())


def _read_part(path: Path, wanted: set[str] | None) -> Iterator[tuple[str, Series]]:
    """Slice a part into its connections: rows of one (connection, subflow, variable) adjoin."""
    table = pq.read_table(path).unify_dictionaries().combine_chunks()
    if not len(table):
        return
    columns = [_one(table.column(name)) for name in EVENTS.names]
    names = columns[0].dictionary.to_pylist()
    variables = columns[3].dictionary.to_pylist()
    code = columns[0].indices.to_numpy()
    subflow = columns[1].to_numpy()
    variable = columns[3].indices.to_numpy()
    time_us, value = columns[2].to_numpy(), columns[4].to_numpy()
    change = (np.diff(code) != 0) | (np.diff(subflow) != 0) | (np.diff(variable) != 0)
    edges = np.concatenate([[0], np.flatnonzero(change) + 1, [len(code)]])
    current, series = -1, Series()
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if code[start] != current:
            if current >= 0 and (wanted is None or names[current] in wanted):
                yield names[current], series
            current, series = int(code[start]), {}
        series.setdefault(int(subflow[start]), {})[variables[variable[start]]] = (
            time_us[start:stop],
            value[start:stop],
        )
    if wanted is None or names[current] in wanted:
        yield names[current], series


def _one(column: pa.ChunkedArray) -> Any:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


class PartWriter:
    """Writes events of one connection after another into ``{stem}-00.parquet`` and following.

    Rows must come by connection, subflow, variable and time; a new file begins only between two
    connections.
    """

    def __init__(self, directory: Path, stem: str) -> None:
        self._directory = directory
        self._stem = stem
        self._writer: pq.ParquetWriter | None = None
        self._files = 0
        self._rows_in_file = 0
        self._names: list[str] = []
        self._pieces: list[tuple[int, int, int, Ints, Ints]] = []
        self._rows = 0

    def begin(self, connection: str) -> None:
        """Start the next connection."""
        if self._rows_in_file + self._rows >= PART_ROWS:
            self._flush()
            self._finish_file()
        self._names.append(connection)

    def add(self, subflow: int, variable: int, time_us: Ints, value: Ints) -> None:
        """Add events of the connection that was begun last."""
        self._pieces.append((len(self._names) - 1, subflow, variable, time_us, value))
        self._rows += len(time_us)
        if self._rows >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._pieces:
            return
        sizes = [len(piece[3]) for piece in self._pieces]
        first = self._pieces[0][0]
        codes = np.repeat(np.array([p[0] - first for p in self._pieces], np.int32), sizes)
        variables = np.repeat(np.array([p[2] for p in self._pieces], np.int8), sizes)
        table = pa.Table.from_arrays(
            [
                pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(self._names[first:])),
                pa.array(np.repeat(np.array([p[1] for p in self._pieces], np.int16), sizes)),
                pa.array(np.concatenate([p[3] for p in self._pieces])),
                pa.DictionaryArray.from_arrays(pa.array(variables), pa.array(VARIABLE_NAMES)),
                pa.array(np.concatenate([p[4] for p in self._pieces])),
            ],
            schema=EVENTS,
        )
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._directory / f"{self._stem}-{self._files:02d}.parquet",
                EVENTS,
                compression="zstd",
                use_dictionary=["connection", "variable"],
                column_encoding={
                    "time_us": "DELTA_BINARY_PACKED",
                    "value": "DELTA_BINARY_PACKED",
                    "subflow": "PLAIN",
                },
            )
        self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self._rows_in_file += self._rows
        self._names = self._names[-1:]
        self._pieces, self._rows = [], 0

    def _finish_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._files += 1
        self._rows_in_file = 0

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._finish_file()
