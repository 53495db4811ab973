"""Log files become an ingested directory (``data.schema``): streamed, in parallel, atomically."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import formats, quarantine
from data.errors import UserError
from data.formats.base import Options
from data.inputs import Source, check_outside, copy_stream, find_sources, is_stream
from data.labels import KNOWN, match_labels
from data.parquet import write_connections
from data.place import building
from data.pool import Show, read_shards
from data.source import Shard, ShardResult
from data.store import RECORD, own_files

SHARD_BYTES = 64 << 20
"""Files are put together to parts until they have about so much text."""
COMPRESSION_GUESS = 8
"""Text per compressed byte, to size the shards alike."""
Progress = Callable[[str, int], AbstractContextManager[Show]]
"""(label, total bytes) -> context that gives the function to call with the bytes read so far."""


STREAMS = "streams"
"""Where copies of pipes lie while they are read."""


@dataclass(frozen=True)
class Settings:
    """Settings of ``ingest``, which gets the files besides.

    Attributes
    ----------
    format : str
        A name of ``FORMATS`` or "auto".
    jobs : int or None
        Processes; the number of cores by default.
    connection_key : str or None
        Regular expression with one group: files whose names give the same text are one connection.
    srtt_unit : str
        "auto", "ms" or "us", for the old tcpprobe text.
    """

    format: str = "auto"
    jobs: int | None = None
    connection_key: str | None = None
    srtt_unit: str = "auto"


def ingest(
    paths: list[Path],
    out: Path,
    labels: Path | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Read logs and write an ingested directory, which replaces ``out`` when all is done.

    Parameters
    ----------
    paths : list of Path
        Files, directories, pipes, or ``-`` for standard input.
    out : Path
        The directory to make; an earlier ingested one is replaced, if it holds nothing else.
    labels : Path, optional
        The labels file; by default each ``labels.csv`` found labels the logs below it.
    settings : Settings, optional
        Format, processes and the like.
    progress : callable, optional
        Shows the bytes read; see `Progress`.

    Returns
    -------
    dict
        The counts of ``ingest.json``: ``lines_read`` is always the sum of ``event_lines``,
        ``skipped_lines`` and ``quarantined_lines``.

    Raises
    ------
    UserError
        For missing paths, devices, an unknown format, a wrong labels file, or an ``out`` that
        holds something else, lies in a directory that is read, or can't be written.
    """
    settings = settings or Settings()
    started = time.monotonic()
    if settings.format != "auto":
        formats.load(settings.format)
    key = key_pattern(settings.connection_key)
    check_outside(out, paths)
    sources, found_labels = find_sources(paths)
    if labels is not None:
        sources = [s for s in sources if s[1].resolve() != labels.resolve()]
    table = match_labels(sources, labels, found_labels)
    with building(out, own_files, "cczoo ingest") as work:
        (work / "events").mkdir()
        sources = _copied(sources, work / STREAMS)
        shards = _shards(sources, key, work, settings)
        total = sum(path.stat().st_size for _, path in sources)
        with progress("ingest", total) if progress else nullcontext(lambda _: None) as show:
            results = read_shards(shards, settings.jobs or len(os.sched_getaffinity(0)), show)
        shutil.rmtree(work / STREAMS, ignore_errors=True)
        _write_connections(work, results, table.columns, table.rows)
        files = [file for result in results for file in result.quarantine]
        quarantine.join(files, work / "quarantine.parquet")
        report = _report(results)
        report["labels_files"] = table.files
        report["labels_unmatched"] = table.unmatched
        report["sources_unlabelled"] = len(sources) - len(table.rows)
        report["seconds"] = round(time.monotonic() - started, 3)
        _write_record(work, report)
    return report


def _copied(sources: list[Source], folder: Path) -> list[Source]:
    """The sources, with copies in place of what can be read only once."""
    kept = []
    for number, (name, path) in enumerate(sources):
        if is_stream(path):
            folder.mkdir(exist_ok=True)
            copy_stream(path, folder / str(number))
            path = folder / str(number)
        kept.append((name, path))
    return kept


def _write_record(work: Path, report: dict[str, Any]) -> None:
    """Write the counts and the names of all files, which say what a later run may replace."""
    files = [path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()]
    record = report | {"files": sorted([RECORD, *files])}
    (work / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def key_pattern(text: str | None) -> re.Pattern[str] | None:
    """Compile ``--connection-key``.

    Raises
    ------
    UserError
        When it isn't a regular expression with one group.
    """
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UserError(f"--connection-key {text!r}: not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise UserError(f"--connection-key {text!r}: put exactly one group (...) into it")
    return pattern


def _shards(
    sources: list[tuple[str, Path]], key: re.Pattern[str] | None, work: Path, settings: Settings
) -> list[Shard]:
    """Group files by name order and size alone, so that the parts don't depend on the jobs."""
    units: dict[str, list[tuple[str, Path]]] = {}
    keys: dict[str, str] = {}
    for name, path in sources:
        match = key.search(name) if key else None
        unit = f"key:{match.group(1)}" if match else f"file:{name}"
        units.setdefault(unit, []).append((name, path))
        if match:
            keys[name] = str(match.group(1))
    shards: list[list[tuple[str, Path]]] = []
    size = SHARD_BYTES
    for unit_sources in units.values():
        if size >= SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1] += unit_sources
        size += sum(_text_bytes(path) for _, path in unit_sources)
    return [
        Shard(
            number=i,
            sources=tuple(shard),
            keys=tuple(keys.get(name) for name, _ in shard),
            work=work,
            format=settings.format,
            options=Options(srtt_unit=settings.srtt_unit),
        )
        for i, shard in enumerate(shards)
    ]


def _text_bytes(path: Path) -> int:
    size = path.stat().st_size
    return size * COMPRESSION_GUESS if path.suffix in {".gz", ".zst"} else size


def _write_connections(
    work: Path,
    results: list[ShardResult],
    columns: list[str],
    attributes: dict[str, dict[str, str | None]],
) -> None:
    rows: list[dict[str, Any]] = []
    for result in results:
        for row in result.connections:
            known = attributes.get(row["source"], {})
            row |= {name: known[name] for name in KNOWN if known.get(name) is not None}
            rows.append(row | {name: known.get(name) for name in columns})
    write_connections(work / "connections.parquet", rows, columns)


def _report(results: list[ShardResult]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    by_format: Counter[str] = Counter()
    for result in results:
        counts.update(result.counts)
        by_format.update(result.formats)
    names = (
        "lines_read", "event_lines", "skipped_lines", "quarantined_lines", "events",
        "connections", "subflows", "sources", "bytes", "backwards_lines", "damaged_sources",
    )  # fmt: skip
    report: dict[str, Any] = {name: counts[name] for name in names}
    report["formats"] = dict(sorted(by_format.items()))
    return report
