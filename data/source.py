"""A shard of an ingestion: its files are read one by one into parts and a quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from data import formats
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
from data.quarantine import Quarantine
from data.reorder import kept_lines, reordered
from data.spool import NUMBER_OF_VARIABLES, Spool
from data.store import Ints, PartWriter
from data.stream import Block, DamagedStream, blocks, head

UNKNOWN = "unrecognised"
BAD_FIRST = range(FIRST_REASON, FIRST_REASON + len(REASONS))
Count = Callable[[int], None]
"""Called with how many more bytes of the files on disk have been read."""


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
    """Rows of ``connections``, counts, sources per format, the quarantine's files.

    ``files`` has each source's format and own counts of lines.
    """

    connections: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    files: dict[str, tuple[str, Counter[str]]] = field(default_factory=dict)
    quarantine: list[Path] = field(default_factory=list)


@dataclass
class _Found:
    """A socket of a file, by its number in the file's spool."""

    number: int
    source: str
    format: str
    socket: Socket
    spool: Spool

    @property
    def events(self) -> int:
        """Number of events."""
        return self.spool.count(self.number)


class Sink(Protocol):
    """A place for connections: their events by subflow, variable and time, then each one's row."""

    def begin(self, connection: str) -> None:
        """Start the next connection."""

    def add(self, subflow: int, variable: int, time_us: Ints, value: Ints) -> None:
        """Add events of the connection that was begun last."""

    def end(self, row: dict[str, Any]) -> None:
        """Take the row of the connection that was begun last."""


def ingest_shard(shard: Shard, count: Count, sink: Sink | None = None) -> ShardResult:
    """Read a shard's files.

    Parameters
    ----------
    shard : Shard
        Its quarantine is written under ``shard.work``.
    count : callable
        Progress.
    sink : Sink, optional
        Takes the connections; by default they become parts under ``shard.work``, and rows of the
        result.
    """
    result = ShardResult()
    quarantine = Quarantine(shard.work, f"quarantine-{shard.number:05d}")
    parts = PartWriter(shard.work / "events", f"part-{shard.number:05d}")
    to = sink or parts
    i = 0
    while i < len(shard.sources):
        # Files of one key follow each other and make one connection.
        key, j = shard.keys[i], i + 1
        while j < len(shard.sources) and key is not None and shard.keys[j] == key:
            j += 1
        found: list[_Found] = []
        for name, path in shard.sources[i:j]:
            found += _Source(name, path, shard, quarantine, result).read(count)
        _write_unit(found, key, to, result)
        for spool in {id(item.spool): item.spool for item in found}.values():
            spool.close()
        i = j
    parts.close()
    result.connections = parts.connections
    result.quarantine = quarantine.close()
    return result


class _Source:
    """Reading of one file: counts its lines, keeps its events."""

    def __init__(
        self, name: str, path: Path, shard: Shard, quarantine: Quarantine, result: ShardResult
    ) -> None:
        self._name = name
        self._path = path
        self._work = shard.work
        self._quarantine = quarantine
        self._result = result
        self._counts: Counter[str] = Counter(sources=1)
        self._spool = Spool(shard.work)
        self._unfinished: int | None = None
        chosen = formats.recognise(head(path)) if shard.format == "auto" else shard.format
        self._format = chosen or UNKNOWN
        self._pieces = False
        self._reader: Reader | None = None
        if chosen is not None:
            module = formats.load(chosen)
            self._pieces = getattr(module, "PIECES", False)
            self._reader = module.reader(replace(shard.options, name=name))

    def read(self, count: Count) -> list[_Found]:
        """Read the file; what it is about, by socket."""
        line, offset, seen = 1, 0, 0

        def watch(position: int) -> None:
            nonlocal seen
            count(position - seen)
            seen = position

        try:
            for block in blocks(self._path, self._pieces, watch):
                line = block.first_line + len(block.lines.starts) - block.unfinished
                offset = block.offset + block.size
                self._take(block)
        except DamagedStream as error:
            # The damage is a line of its own: something was there and couldn't be read.
            self._counts.update(damaged_sources=1, lines_read=1, quarantined_lines=1)
            reason = REASONS[DAMAGED_STREAM - FIRST_REASON]
            self._quarantine.add(self._name, line, offset, reason, str(error))
        self._counts["bytes"] += offset
        found = self._finish()
        self._result.counts.update(self._counts)
        self._result.formats[self._format] += 1
        self._result.files[self._name] = (self._format, self._counts)
        return found

    def _finish(self) -> list[_Found]:
        if self._reader is None:
            return []
        self._counts["backwards_lines"] += self._reader.backwards
        if self._reader.backwards:
            self._read_again()
        rest = self._reader.finish()
        if rest is not None:
            self._add(rest)
        self._spool.seal()
        return [
            _Found(number, self._name, self._format, socket, self._spool)
            for number, socket in enumerate(self._reader.sockets())
        ]

    def _read_again(self) -> None:
        """Replace what was found by what the lines say in the order of time."""
        assert self._reader is not None
        timer, reader = self._reader.again(), self._reader.again()
        if timer is None or reader is None:
            return
        self._spool.close()
        self._spool = Spool(self._work)
        understood = self._counts["event_lines"] + self._counts["skipped_lines"]
        kept = 0
        for batch in reordered(self._path, timer, reader, self._work):
            kept += kept_lines(batch)
            self._add(batch)
        self._counts["event_lines"] = kept
        self._counts["skipped_lines"] = understood - kept
        self._reader = reader

    def _add(self, batch: Batch) -> None:
        self._spool.add(batch.socket, batch.variable, batch.time_us, batch.value)

    def _take(self, block: Block) -> None:
        size = len(block.lines.starts)
        reasons: dict[int, str] = {}
        if block.too_long or self._reader is None:
            status = np.full(size, TOO_LONG if block.too_long else UNRECOGNISED, np.uint8)
        else:
            batch = self._reader.parse(block.lines)
            status, reasons = batch.status, batch.reasons or {}
            self._add(batch)
        if self._unfinished is not None:
            # A line in pieces has events if any piece has.
            status[0] = min(self._unfinished, status[0], key=(EVENT, *BAD_FIRST, SKIPPED).index)
        self._unfinished = int(status[-1]) if block.unfinished else None
        if block.unfinished:
            status = status[:-1]
        self._count(block, status, reasons)

    def _count(self, block: Block, status: NDArray[np.uint8], reasons: dict[int, str]) -> None:
        kept = int(np.count_nonzero(status == EVENT))
        skipped = int(np.count_nonzero(status == SKIPPED))
        bad = len(status) - kept - skipped
        self._counts.update(
            lines_read=len(status), event_lines=kept, skipped_lines=skipped, quarantined_lines=bad
        )
        if bad:
            self._quarantine.add_lines(self._name, block, status, reasons)


def _write_unit(found: list[_Found], key: str | None, sink: Sink, result: ShardResult) -> None:
    groups: dict[tuple[str, str], list[_Found]] = {}
    for item in found:
        if not item.events:
            continue
        if key is not None:
            name = key if item.socket.sends else f"{key} (receiver)"
            groups.setdefault(("", name), []).append(item)
        else:
            groups.setdefault((item.source, item.socket.connection), []).append(item)
    for (_, name), items in groups.items():
        # The first file's name stands for all files of a key.
        connection = f"{items[0].source}:{name}"
        sink.end(_write_connection(connection, items, sink, key is not None))
        result.counts["connections"] += 1
        result.counts["subflows"] += len(items)
        result.counts["events"] += sum(item.events for item in items)


def _write_connection(
    connection: str, items: list[_Found], sink: Sink, renumber: bool
) -> dict[str, Any]:
    numbers = [item.socket.subflow for item in items]
    if renumber or len(set(numbers)) != len(numbers):
        numbers = list(range(1, len(items) + 1))
    sink.begin(connection)
    subflows: list[dict[str, Any]] = []
    start_us, end_us = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    meta: dict[str, str] = {}
    tokens = [item.socket.token for item in items if item.socket.token]
    for subflow, item in sorted(zip(numbers, items, strict=True), key=lambda pair: pair[0]):
        meta |= item.socket.meta
        smallest: dict[int, int] = {}
        for variable in range(NUMBER_OF_VARIABLES):
            for time_us, value in _ordered(item.spool, item.number, variable):
                if variable == SRTT and item.socket.srtt_scale != 1:
                    value = value * item.socket.srtt_scale
                sink.add(subflow, variable, time_us, value)
                start_us = min(start_us, int(time_us[0]))
                end_us = max(end_us, int(time_us[-1]))
                if variable in (RTT, SRTT):
                    low = int(value.min())
                    smallest[variable] = min(smallest.get(variable, low), low)
        kind = RTT if RTT in smallest else SRTT
        low = smallest.get(kind, -1)
        if smallest and item.socket.min_rtt_us > 0:
            low = min(low, item.socket.min_rtt_us)
        subflows.append(
            {
                "subflow": subflow,
                "sport": item.socket.sport,
                "dport": item.socket.dport,
                "min_rtt_us": low,
                "rtt_kind": {RTT: "raw", SRTT: "srtt"}[kind] if smallest else "none",
                "events": item.events,
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
    """Segments in the order of time; joined and sorted only if a log goes back."""
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
