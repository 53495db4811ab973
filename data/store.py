"""Read and write ingested directories (see ``data.schema``)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from arro3.core import DataType
from numpy.typing import NDArray

from data import parquet
from data.errors import UserError
from data.schema import VARIABLES

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int64]
Series = dict[int, dict[str, tuple[Ints, Ints]]]
"""subflow -> variable -> (time_us, value), both int64 array [n], times ascending."""

PART_ROWS = 1 << 20
"""Events that a part has: it is in memory as a whole when it is written and when it is read."""
VARIABLE_NAMES = list(VARIABLES)
RECORD = "ingest.json"
EVENTS_FOLDER = "events/"
"""The folder of the parts; it is there even without any events."""
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
        subflow -> variable -> (time_us int64 array [n], value int64 array [n]), times ascending
        (units as in ``data.schema.VARIABLES``). A variable without events is absent.

    Raises
    ------
    UserError
        When the directory isn't an ingested one.
    """
    directory = Path(directory)
    wanted = None if connections is None else set(connections)
    rows = {row["connection"]: row for row in read_connections(directory).iter_rows(named=True)}
    # A long connection goes on in the next part.
    for name, runs in groupby(_runs(directory, wanted), itemgetter(0)):
        found: dict[int, dict[str, list[tuple[Ints, Ints]]]] = {}
        for _, subflow, variable, time_us, value in runs:
            found.setdefault(subflow, {}).setdefault(variable, []).append((time_us, value))
        yield (
            rows[name],
            {
                subflow: {variable: _joined(pieces) for variable, pieces in variables.items()}
                for subflow, variables in found.items()
            },
        )


def _joined(pieces: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([t for t, _ in pieces]), np.concatenate([v for _, v in pieces])


def _runs(directory: Path, wanted: set[str] | None) -> Iterator[tuple[str, int, str, Ints, Ints]]:
    """Cut the parts into rows of one (connection, subflow, variable), which adjoin."""
    import polars as pl

    for path in sorted((directory / "events").glob("part-*.parquet")):
        if wanted is not None:
            names = pl.scan_parquet(path).select(pl.col("connection").unique()).collect()
            if wanted.isdisjoint(names["connection"].cast(pl.String)):
                continue
        part = pl.read_parquet(path).rechunk()
        keys = part.select(pl.col("connection", "variable").to_physical(), "subflow")
        change = np.zeros(max(len(part) - 1, 0), bool)
        for column in keys:
            change |= np.diff(column.to_numpy()) != 0
        starts = np.append(0, np.flatnonzero(change) + 1)[: len(part)]
        heads = part[starts].select(
            pl.col("connection").cast(pl.String), "subflow", pl.col("variable").cast(pl.String)
        )
        time_us, value = part["time_us"].to_numpy(), part["value"].to_numpy()
        stops = np.append(starts[1:], len(part))
        for head, start, stop in zip(heads.iter_rows(), starts, stops, strict=True):
            if wanted is None or head[0] in wanted:
                yield *head, time_us[start:stop], value[start:stop]


class PartWriter:
    """Writes events of one connection after another into ``{stem}-00000.parquet`` and following.

    Rows must come by connection, subflow, variable and time.
    """

    def __init__(self, directory: Path, stem: str) -> None:
        self._directory = directory
        self._stem = stem
        self._files = 0
        self._names: list[str] = []
        self._pieces: list[tuple[int, int, int, Ints, Ints]] = []
        self._rows = 0
        self.connections: list[dict[str, Any]] = []

    def begin(self, connection: str) -> None:
        """Start the next connection."""
        self._names.append(connection)

    def add(self, subflow: int, variable: int, time_us: Ints, value: Ints) -> None:
        """Add events of the connection that was begun last."""
        self._pieces.append((len(self._names) - 1, subflow, variable, time_us, value))
        self._rows += len(time_us)
        if self._rows >= PART_ROWS:
            self._flush()

    def end(self, row: dict[str, Any]) -> None:
        """Keep the row of the connection that was begun last."""
        self.connections.append(row)

    def _flush(self) -> None:
        if not self._pieces:
            return
        sizes = [len(piece[3]) for piece in self._pieces]
        first = self._pieces[0][0]
        code = np.repeat(np.array([p[0] - first for p in self._pieces], np.int32), sizes)
        variable = np.repeat(np.array([p[2] for p in self._pieces], np.int32), sizes)
        events = parquet.events(
            parquet.coded(self._names[first:], code, DataType.int32()),
            np.repeat(np.array([p[1] for p in self._pieces], np.int16), sizes),
            np.concatenate([p[3] for p in self._pieces]),
            parquet.coded(VARIABLE_NAMES, variable, DataType.int8()),
            np.concatenate([p[4] for p in self._pieces]),
        )
        path = self._directory / f"{self._stem}-{self._files:05d}.parquet"
        parquet.write_events(path, events)
        self._files += 1
        self._names = self._names[-1:]
        self._pieces, self._rows = [], 0

    def close(self) -> None:
        """Write what is left."""
        self._flush()
