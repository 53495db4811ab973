"""From log files to an ingested directory (``data.schema``): streaming, in parallel, atomic."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data import formats
from data.errors import UserError
from data.formats.base import Options
from data.labels import KNOWN, LABELS_FILE, match_labels
from data.schema import CONNECTIONS, QUARANTINE
from data.source import Shard, ShardResult, ingest_shard

SHARD_BYTES = 64 << 20
"""Files are put together to parts until they have about so much text."""
COMPRESSION_GUESS = 8
"""Text per compressed byte, to size the shards alike."""
Progress = Callable[[Iterable[Any], str, int], Iterator[Any]]


@dataclass(frozen=True)
class Settings:
    """What ``ingest`` is told besides the files.

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


NOT_LOGS = (LABELS_FILE, "campaign.jsonl")
"""What the lab writes beside its logs: labels, and its own account of every run."""


def find_sources(paths: list[Path]) -> tuple[list[tuple[str, Path]], list[Path]]:
    """List the log files under the given paths.

    Parameters
    ----------
    paths : list of Path
        Files and directories (searched to any depth; hidden files are left out).

    Returns
    -------
    sources : list of (str, Path)
        Name (relative to the directory, or the file's own) and path, sorted by name.
    labels : list of Path
        The ``labels.csv`` files found, which aren't logs.

    Raises
    ------
    UserError
        When a path doesn't exist or holds no file.
    """
    found: dict[Path, str] = {}
    labels: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                file
                for file in path.rglob("*")
                if file.is_file()
                and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
            labels += [file for file in inside if file.name == LABELS_FILE]
            logs = [file for file in inside if file.name not in NOT_LOGS]
            for file in logs:
                found.setdefault(file, file.relative_to(path).as_posix())
        elif path.exists():
            found.setdefault(path, path.name)
        else:
            raise UserError(f"{path}: no such file or directory: give a log or a directory of logs")
    if not found:
        raise UserError(f"{', '.join(map(str, paths))}: no log files in there")
    taken = Counter(found.values())
    sources = [
        (name if taken[name] == 1 else path.as_posix(), path) for path, name in found.items()
    ]
    return sorted(sources), labels


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
        Files or directories.
    out : Path
        The directory to make; an earlier ingested one is replaced.
    labels : Path, optional
        The labels file; by default each ``labels.csv`` found labels the logs below it.
    settings : Settings, optional
        Format, processes and the like.
    progress : callable, optional
        Wraps the iteration over shards: (iterable, label, total).

    Returns
    -------
    dict
        The counts of ``ingest.json``: ``lines_read`` is always the sum of ``event_lines``,
        ``skipped_lines`` and ``quarantined_lines``.

    Raises
    ------
    UserError
        For missing paths, an unknown format, a wrong labels file, or an ``out`` that holds
        something else.
    """
    settings = settings or Settings()
    started = time.monotonic()
    if settings.format != "auto":
        formats.load(settings.format)
    key = _key_pattern(settings.connection_key)
    sources, found_labels = find_sources(paths)
    if labels is not None:
        sources = [s for s in sources if s[1].resolve() != labels.resolve()]
    table = match_labels(sources, labels, found_labels)
    _check_out(out)
    work = out.with_name(f".{out.name}.{os.getpid()}.part")
    shutil.rmtree(work, ignore_errors=True)
    (work / "events").mkdir(parents=True)
    try:
        shards = _shards(sources, key, work, settings)
        results = _run(shards, settings.jobs, progress)
        _write_connections(work, results, table.columns, table.rows)
        _write_quarantine(work, results)
        report = _report(results)
        report["labels_files"] = table.files
        report["labels_unmatched"] = table.unmatched
        report["sources_unlabelled"] = len(sources) - len(table.rows)
        report["seconds"] = round(time.monotonic() - started, 3)
        (work / "ingest.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        _replace(work, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return report


def _key_pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UserError(f"--connection-key {text!r}: not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise UserError(f"--connection-key {text!r}: put exactly one group (...) into it")
    return pattern


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file: give a directory to make")
    if out.is_dir() and any(out.iterdir()) and not (out / "ingest.json").exists():
        raise UserError(
            f"{out}: holds something that isn't an ingested directory: give a new or empty one"
        )


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


def _run(shards: list[Shard], jobs: int | None, progress: Progress | None) -> list[ShardResult]:
    def watched(items: Iterable[ShardResult]) -> Iterable[ShardResult]:
        return progress(items, "ingest", len(shards)) if progress else items

    jobs = min(jobs or len(os.sched_getaffinity(0)), len(shards))
    if jobs <= 1:
        return list(watched(map(ingest_shard, shards)))
    # Spawned rather than forked: the parent's threads (Arrow) don't survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(watched(pool.map(ingest_shard, shards)))


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
    schema = CONNECTIONS
    for name in columns:
        schema = schema.append(pa.field(name, pa.string()))
    pq.write_table(pa.Table.from_pylist(rows, schema), work / "connections.parquet")


def _write_quarantine(work: Path, results: list[ShardResult]) -> None:
    """Join the shards' quarantines in order, one block in memory at a time."""
    with pq.ParquetWriter(work / "quarantine.parquet", QUARANTINE, compression="zstd") as writer:
        for result in results:
            if result.quarantine is None:
                continue
            with pq.ParquetFile(result.quarantine) as file:
                for batch in file.iter_batches():
                    writer.write_batch(batch)
            result.quarantine.unlink()


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


def _replace(work: Path, out: Path) -> None:
    """Put the finished directory in place; the old one is there until then."""
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    if out.exists():
        out.rename(old)
    work.rename(out)
    shutil.rmtree(old, ignore_errors=True)
