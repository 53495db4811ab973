"""One shard of an ingestion: its files read one after another into parts and a quarantine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data import formats
from data.errors import UserError
from data.formats.base import (
    DAMAGED_STREAM,
    EVENT,
    FIRST_REASON,
    REASONS,
    RTT,
    SKIPPED,
    SRTT,
    TOO_LONG,
    UNRECOGNISED,
    Batch,
    Options,
    Reader,
    Socket,
)
from data.schema import QUARANTINE
from data.spool import NUMBER_OF_VARIABLES, Spool
from data.store import PartWriter
from data.stream import Block, DamagedStream, blocks, head

TEXT_BYTES = 200
UNKNOWN = "unrecognised"


@dataclass(frozen=True)
class Shard:
    """Files that one process reads: (name, path), and the connection key of each or None."""

    number: int
    sources: tuple[tuple[str, Path], ...]
    keys: tuple[str | None, ...]
    work: Path
    format: str
    options: Options


@dataclass
class ShardResult:
    """Rows of ``connections``, counts, sources per format, and the quarantine's file."""

    connections: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    quarantine: Path | None = None


@dataclass
class _Found:
    """A socket of some file of a unit, by its number in the unit's spool."""

    number: int
    source: str
    format: str
    socket: Socket


def ingest_shard(shard: Shard) -> ShardResult:
    """Read a shard's files and write its parts and its quarantine under ``shard.work``."""
    result = ShardResult()
    quarantine = Quarantine(shard.work / f"quarantine-{shard.number:05d}.parquet")
    parts = PartWriter(shard.work / "events", f"part-{shard.number:05d}")
    i = 0
    while i < len(shard.sources):
        # Files of one key follow each other and make one connection.
        j = i + 1
        while (
            j < len(shard.sources) and shard.keys[i] is not None and shard.keys[j] == shard.keys[i]
        ):
            j += 1
        spool = Spool(shard.work)
        found: list[_Found] = []
        for name, path in shard.sources[i:j]:
            found += _read_source(name, path, shard, spool, len(found), quarantine, result)
        spool.seal()
        result.connections += _write_unit(found, shard.keys[i], spool, parts, result)
        spool.close()
        i = j
    parts.close()
    result.quarantine = quarantine.close()
    return result


def _read_source(
    name: str,
    path: Path,
    shard: Shard,
    spool: Spool,
    first_number: int,
    quarantine: Quarantine,
    result: ShardResult,
) -> list[_Found]:
    counts = result.counts
    counts["sources"] += 1
    try:
        chosen = formats.recognise(head(path)) if shard.format == "auto" else shard.format
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: make it readable or leave it out") from None
    result.formats[chosen or UNKNOWN] += 1
    reader: Reader | None = None
    if chosen is not None:
        reader = formats.load(chosen).reader(replace(shard.options, name=name))
    line, offset = 1, 0
    try:
        for block in blocks(path):
            line = block.first_line + len(block.lines.starts)
            offset = block.offset + len(block.lines.buffer)
            _take_block(name, block, reader, spool, first_number, quarantine, counts)
    except DamagedStream as error:
        counts["damaged_sources"] += 1
        # The damage is a line of its own: something was there and couldn't be read.
        counts["lines_read"] += 1
        counts["quarantined_lines"] += 1
        quarantine.add(name, line, offset, REASONS[DAMAGED_STREAM - FIRST_REASON], str(error))
    counts["bytes"] += offset
    if reader is None:
        return []
    counts["backwards_lines"] += reader.backwards
    return [
        _Found(first_number + i, name, str(chosen), socket)
        for i, socket in enumerate(reader.sockets())
    ]


def _take_block(
    name: str,
    block: Block,
    reader: Reader | None,
    spool: Spool,
    first_number: int,
    quarantine: Quarantine,
    counts: Counter[str],
) -> None:
    size = len(block.lines.starts)
    reasons: dict[int, str] = {}
    if block.too_long or reader is None:
        status = np.full(size, TOO_LONG if block.too_long else UNRECOGNISED, np.uint8)
    else:
        batch: Batch = reader.parse(block.lines)
        status = batch.status
        reasons = batch.reasons or {}
        if len(batch.socket):
            spool.add(batch.socket + first_number, batch.variable, batch.time_us, batch.value)
    kept = int(np.count_nonzero(status == EVENT))
    skipped = int(np.count_nonzero(status == SKIPPED))
    counts["lines_read"] += size
    counts["event_lines"] += kept
    counts["skipped_lines"] += skipped
    counts["quarantined_lines"] += size - kept - skipped
    if kept + skipped == size:
        return
    for i in np.flatnonzero(status >= FIRST_REASON).tolist():
        start, end = int(block.lines.starts[i]), int(block.lines.ends[i])
        text = block.lines.buffer[start : min(end, start + 4 * TEXT_BYTES)].tobytes()
        reason = reasons.get(i) or REASONS[status[i] - FIRST_REASON]
        quarantine.add(name, block.first_line + i, block.offset + start, reason, text)


def _write_unit(
    found: list[_Found], key: str | None, spool: Spool, parts: PartWriter, result: ShardResult
) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[_Found]] = {}
    for item in found:
        if spool.count(item.number):
            if key is not None:
                groups.setdefault(("", key), []).append(item)
            else:
                groups.setdefault((item.source, item.socket.connection), []).append(item)
    rows = []
    for (_, name), items in groups.items():
        # The first file's name stands for all files of a key.
        connection = f"{items[0].source}:{name}"
        rows.append(_write_connection(connection, items, spool, parts, key is not None))
        result.counts["connections"] += 1
        result.counts["subflows"] += len(items)
        result.counts["events"] += sum(spool.count(item.number) for item in items)
    return rows


def _write_connection(
    connection: str, items: list[_Found], spool: Spool, parts: PartWriter, renumber: bool
) -> dict[str, Any]:
    numbers = [item.socket.subflow for item in items]
    if renumber or len(set(numbers)) != len(numbers):
        numbers = list(range(1, len(items) + 1))
    parts.begin(connection)
    subflows: list[dict[str, Any]] = []
    start_us, end_us = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    meta: dict[str, str] = {}
    tokens = [item.socket.token for item in items if item.socket.token]
    for subflow, item in sorted(zip(numbers, items, strict=True), key=lambda pair: pair[0]):
        meta |= item.socket.meta
        smallest: dict[int, int] = {}
        for variable in range(NUMBER_OF_VARIABLES):
            for time_us, value in _ordered(spool, item.number, variable):
                parts.add(subflow, variable, time_us, value)
                start_us = min(start_us, int(time_us[0]))
                end_us = max(end_us, int(time_us[-1]))
                if variable in (RTT, SRTT):
                    low = int(value.min())
                    smallest[variable] = min(smallest.get(variable, low), low)
        kind = RTT if RTT in smallest else SRTT
        low = smallest.get(kind, -1)
        if RTT in smallest and item.socket.min_rtt_us > 0:
            low = min(low, item.socket.min_rtt_us)
        subflows.append(
            {
                "subflow": subflow,
                "sport": item.socket.sport,
                "dport": item.socket.dport,
                "min_rtt_us": low,
                "rtt_kind": {RTT: "raw", SRTT: "srtt"}[kind] if smallest else "none",
                "events": spool.count(item.number),
            }
        )
    return {
        "connection": connection,
        "source": items[0].source,
        "format": items[0].format,
        "token": tokens[0] if tokens else None,
        "label": meta.get("label"),
        "dataset": meta.get("dataset"),
        "kernel": meta.get("kernel"),
        "cc": meta.get("cc"),
        "start_us": int(start_us),
        "end_us": int(end_us),
        "subflows": subflows,
    }


def _ordered(spool: Spool, socket: int, variable: int) -> Any:
    """Segments in the order of time; joined and sorted only where a log goes back."""
    last = None
    for time_us, _ in spool.segments(socket, variable):
        if (last is not None and time_us[0] < last) or bool((np.diff(time_us) < 0).any()):
            break
        last = time_us[-1]
    else:
        yield from spool.segments(socket, variable)
        return
    segments = list(spool.segments(socket, variable))
    time_us = np.concatenate([segment[0] for segment in segments])
    value = np.concatenate([segment[1] for segment in segments])
    order = np.argsort(time_us, kind="stable")
    yield time_us[order], value[order]


class Quarantine:
    """Writes quarantined lines in blocks, so that a file full of them costs no memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[tuple[str, int, int, str, str]] = []

    def add(self, source: str, line: int, offset: int, reason: str, text: bytes | str) -> None:
        """Keep a line: number from 1, offset from 0 in the decompressed file."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "backslashreplace")
        self._rows.append((source, line, offset, reason, text[:TEXT_BYTES]))
        if len(self._rows) >= 1 << 16:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, QUARANTINE, compression="zstd")
        columns = [
            pa.array(column, kind)
            for column, kind in zip(zip(*self._rows, strict=True), QUARANTINE.types, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=QUARANTINE))
        self._rows = []

    def close(self) -> Path | None:
        """Finish; None when nothing was quarantined."""
        if self._rows:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        return self._path
