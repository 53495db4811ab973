"""One process's share of an ingestion into a store: logs in, files of a table out."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.fleet import layout, runs
from data.fleet.address import filesystem, is_url, readable
from data.fleet.files import GROUP_BYTES, Output, Partition
from data.fleet.layout import CONNECTION_KIND, COUNTS, QUARANTINE_KIND, SOURCE_KIND
from data.fleet.pseudonyms import Pseudonyms
from data.fleet.table import File
from data.fleet.units import Unit
from data.formats.base import Options
from data.labels import KNOWN
from data.place import scratch
from data.source import Shard, ShardResult, ingest_shard
from data.store import Ints

Count = Callable[[int], None]
EPOCH_US = 946_684_800_000_000
"""Times from the year 2000 on are dates; smaller ones count from a machine's start."""
ROW_BYTES = 1000
"""A guess of what a connection's row takes besides its events."""


@dataclass(frozen=True)
class Task:
    """Logs for one process.

    Attributes
    ----------
    units : tuple of Unit
    place : str
        Address of the table.
    labels : tuple of str
        Attributes that are partition columns.
    extra : tuple of str
        The other attributes.
    format, srtt_unit : str
        As for `data.ingest.Settings`.
    key : bytes or None
        Key of the pseudonyms.
    """

    units: tuple[Unit, ...]
    place: str
    labels: tuple[str, ...]
    extra: tuple[str, ...]
    format: str
    srtt_unit: str
    key: bytes | None


@dataclass
class Taken:
    """Files and counts; each log stands there by name, content, context and intake."""

    files: list[File] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    logs: list[tuple[str, str, str, str]] = field(default_factory=list)


def take(task: Task, count: Count) -> Taken:
    """Read logs and write their rows; nothing of it is in the store before a commit says so."""
    result = Taken()
    output = Output(task.place)
    try:
        with scratch("intake") as work:
            for unit in task.units:
                _take(unit, task, output, work, result, count)
        result.files = output.close()
    except BaseException:
        output.abandon()
        raise
    return result


def _take(unit: Unit, task: Task, output: Output, work: Path, result: Taken, count: Count) -> None:
    pseudonyms = Pseudonyms(task.key)
    sink = _Rows(unit, task, output, pseudonyms)
    with _near(unit, work) as paths:
        shard = Shard(
            number=0,
            sources=tuple(zip((log.name for log in unit.logs), paths, strict=True)),
            keys=tuple(log.connection_key for log in unit.logs),
            work=work,
            format=task.format,
            options=Options(srtt_unit=task.srtt_unit),
        )
        found = ingest_shard(shard, count, sink)
    sink.flush()
    for path in found.quarantine:
        _quarantine(path, unit, sink.partition(QUARANTINE_KIND), output, pseudonyms)
        path.unlink()
    output.add(sink.partition(SOURCE_KIND), _sources(unit, found, sink.by_source))
    result.counts.update(found.counts)
    result.formats.update(found.formats)
    result.logs += [(log.name, log.content, log.context, unit.intake) for log in unit.logs]


@contextmanager
def _near(unit: Unit, work: Path) -> Iterator[list[Path]]:
    """Paths of a unit's logs; those of object stores are copied for the while."""
    copies = []
    paths = []
    for number, log in enumerate(unit.logs):
        if not is_url(log.place):
            paths.append(Path(log.place))
            continue
        system, far = filesystem(log.place)
        copy = work / f"log-{number}"
        try:
            system.get_file(far, str(copy))
        except OSError as error:
            raise readable(log.place, error) from None
        copies.append(copy)
        paths.append(copy)
    try:
        yield paths
    finally:
        for copy in copies:
            copy.unlink(missing_ok=True)


class _Rows:
    """Takes the connections of a unit one by one: `data.source.Sink`."""

    def __init__(self, unit: Unit, task: Task, output: Output, pseudonyms: Pseudonyms) -> None:
        self._unit = unit
        self._task = task
        self._output = output
        self._pseudonyms = pseudonyms
        self._attributes: dict[str, Any] = {log.name: log.attributes for log in unit.logs}
        self._day = unit.logs[0].day
        self._pieces: list[runs.Run] = []
        self._rows: list[dict[str, Any]] = []
        self._runs: list[list[runs.Run]] = []
        self._bytes = 0
        self.by_source: Counter[tuple[str, str]] = Counter()

    def begin(self, connection: str) -> None:
        """Start the next connection."""
        self._pieces = []

    def add(self, subflow: int, variable: int, time_us: Ints, value: Ints) -> None:
        """Keep events of the connection."""
        self._pieces.append((subflow, variable, time_us.copy(), value.copy()))
        self._bytes += 16 * len(time_us)

    def end(self, row: dict[str, Any]) -> None:
        """Keep the connection's row, with what its labels say."""
        if not self._day and row["start_us"] >= EPOCH_US:
            start = datetime.datetime.fromtimestamp(row["start_us"] / 1e6, datetime.UTC)
            self._day = start.date().isoformat()
        known = self._attributes[row["source"]]
        row |= {name: known[name] for name in KNOWN if known.get(name) is not None}
        row |= {name: known.get(name) for name in self._task.extra}
        self.by_source[row["source"], "connections"] += 1
        self.by_source[row["source"], "subflows"] += len(row["subflows"])
        self.by_source[row["source"], "events"] += sum(one["events"] for one in row["subflows"])
        row[layout.INTAKE] = self._unit.intake
        self._rows.append(self._pseudonyms.connection(row))
        self._runs.append(runs.joined(self._pieces))
        self._bytes += ROW_BYTES
        if self._bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand over what is held."""
        if self._rows:
            table = runs.rows(self._rows, self._runs, self._columns())
            self._output.add(self.partition(CONNECTION_KIND), table)
        self._rows, self._runs, self._bytes = [], [], 0

    def _columns(self) -> list[str]:
        return [name for name in self._task.extra if name not in self._task.labels]

    def partition(self, kind: str) -> Partition:
        """Partition of the unit's rows: its day, and its first log's labels."""
        first = self._unit.logs[0]
        day = self._day or first.changed_day
        labels = [(name, first.attributes.get(name)) for name in self._task.labels]
        return ((layout.KIND, kind), (layout.DAY, day), *labels)


def _quarantine(
    path: Path, unit: Unit, partition: Partition, output: Output, pseudonyms: Pseudonyms
) -> None:
    schema = layout.quarantine_schema()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            rows = pa.table(batch)
            texts = [pseudonyms.quarantined(text) for text in rows["text"].to_pylist()]
            columns = {name: rows[name] for name in rows.column_names}
            columns |= {
                layout.INTAKE: pa.array([unit.intake] * len(rows), pa.string()),
                "text": pa.array(texts, pa.string()),
            }
            output.add(partition, pa.table([columns[n] for n in schema.names], schema=schema))


def _sources(unit: Unit, found: ShardResult, by_source: Counter[tuple[str, str]]) -> Any:
    rows = []
    for log in unit.logs:
        format_, counts = found.files[log.name]
        own = {name: by_source[log.name, name] for name in ("connections", "subflows", "events")}
        rows.append(
            {
                "source": log.name,
                layout.INTAKE: unit.intake,
                "content": log.content,
                "unit": re.sub(r"^file:.*", "", log.unit, flags=re.S),
                "stamp": log.stamp,
                "context": log.context,
                "format": format_,
                "counts": {name: int((counts | own).get(name, 0)) for name in COUNTS},
            }
        )
    return pa.Table.from_pylist(rows, schema=layout.SOURCE)
