"""``cczoo ingest --into``: logs are added to a store, each once, all of a run in one commit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from data import formats
from data.errors import UserError, unknown_name
from data.fleet import judgement, layout, ledger
from data.fleet import table as tables
from data.fleet.address import below, is_url, whole
from data.fleet.change import Exchange, commit, without_intakes
from data.fleet.intake import Taken, Task, take
from data.fleet.judgement import Judgement
from data.fleet.pseudonyms import Pseudonyms
from data.fleet.table import File, Table, same_place
from data.fleet.units import Log, Naming, Unit, contents_of, find
from data.ingest import COMPRESSION_GUESS, SHARD_BYTES, Progress, Settings, key_pattern
from data.inputs import check_outside
from data.pool import Show, Work
from data.schema import CONNECTIONS

Spread = Callable[[Work, Sequence[Any], Show], list[Any]]
"""``spread(work, items, show)`` does ``work(item, count)`` for each, here or on a cluster."""
LEAST_BYTES = 1 << 14
"""What opening a small log costs, as if it were so large."""
LISTED = (
    "lines_read", "event_lines", "skipped_lines", "quarantined_lines", "events", "connections",
    "subflows", "sources", "bytes", "backwards_lines", "damaged_sources",
)  # fmt: skip


def ingest_into(
    paths: Sequence[str],
    store: str,
    spread: Spread,
    settings: Settings,
    labels: Path | None = None,
    *,
    root: str | None = None,
    day: str | None = None,
    partition_by: Sequence[str] | None = None,
    key: bytes | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Add logs to a store, which is made if there is none.

    Parameters
    ----------
    paths : sequence of str
        Files and directories, or URLs of them.
    store : str
        Address of the store.
    spread : callable
        See `Spread`.
    settings : Settings
        As for `data.ingest.ingest`; ``jobs`` is ``spread``'s concern.
    labels : Path, optional
        The labels file; by default each ``labels.csv`` found labels the logs below it.
    root, day : str, optional
        See `data.fleet.units.Naming`.
    partition_by : sequence of str, optional
        Label columns by which a new store is parted besides the day.
    key : bytes, optional
        Key of the pseudonyms; without it names, addresses and ports are kept as they are.
    progress : callable, optional
        Shows the bytes read.

    Returns
    -------
    dict
        Counts over the logs taken as in ``ingest.json``; ``logs``: how many were new, replaced,
        unchanged, elsewhere (another log has the same content) or forgotten; ``version``.

    Raises
    ------
    UserError
        As `data.ingest.ingest`; for other partition columns than the store has, or pseudonyms
        in a store without them.
    """
    started = time.monotonic()
    if settings.format != "auto":
        formats.load(settings.format)
    if not is_url(store):
        check_outside(Path(store), [Path(path) for path in paths if not is_url(path)])
    pseudonyms = Pseudonyms(key)
    context = {"format": settings.format, "srtt": settings.srtt_unit, "key": pseudonyms.name}
    naming = Naming(root, day, key_pattern(settings.connection_key), context)
    logs, report = find(paths, labels, naming, pseudonyms)
    table = _opened(store, partition_by, report["columns"])
    plan = judgement.plan(logs, table, lambda fresh: _hashed(fresh, spread, progress))
    extra = tuple(report.pop("columns"))
    parted = tuple(table.partition[2:])
    tasks = [
        Task(units, table.address, parted, extra, settings.format, settings.srtt_unit, key)
        for units in _portions(plan.units)
    ]
    total = sum(log.size for task in tasks for unit in task.units for log in unit.logs)
    with progress("ingest", total) if progress and tasks else nullcontext(_silent) as show:
        done: list[Taken] = spread(take, tasks, show)
    written = [file for taken in done for file in taken.files]
    mine = [log for taken in done for log in taken.logs]
    try:
        dropped = _commit(table, written, mine)
    except BaseException:
        table.delete(written)
        raise
    plan.statuses["elsewhere"] += len(dropped)
    plan.statuses["new"] -= len(dropped)
    counts: Counter[str] = sum((taken.counts for taken in done), Counter())
    kinds: Counter[str] = sum((taken.formats for taken in done), Counter())
    return {
        **{name: counts[name] for name in LISTED},
        "formats": dict(sorted(kinds.items())),
        **report,
        "logs": dict(plan.statuses),
        "store": whole(store),
        "version": table.version,
        "seconds": round(time.monotonic() - started, 3),
    }


def _silent(_: int) -> None:
    """Show nothing."""


def _opened(store: str, partition_by: Sequence[str] | None, labels: Sequence[str]) -> Table:
    """The store's table of logs, with all columns that the labels need."""
    place = below(whole(store), layout.LOGS)
    parted = list(partition_by or [])
    if clash := sorted((set(labels) | set(parted)) & layout.FIXED):
        raise UserError(f"labels: column {clash[0]!r} is one that a store fills: rename it")
    if not tables.exists(place):
        # It is chosen once: a misspelt one would part the store by nothing for good.
        if missing := [name for name in parted if name not in labels]:
            raise unknown_name("label column in --partition-by", missing[0], labels)
        partition = [layout.KIND, layout.DAY, *parted]
        extra = [name for name in labels if name not in parted]
        tables.create(place, layout.table_schema(partition, extra), partition)
    table = Table(place)
    if partition_by is not None and table.partition[2:] != parted:
        has = ", ".join(table.partition[2:]) or "the day alone"
        raise UserError(
            f"{store}: is parted by {has}: leave --partition-by out, or make another store"
        )
    table.add_columns([name for name in labels if name not in CONNECTIONS.names])
    return table


def _hashed(logs: Sequence[Log], spread: Spread, progress: Progress | None) -> list[Log]:
    total = sum(log.size for log in logs)
    portions: list[list[Log]] = []
    size = SHARD_BYTES
    for log in logs:
        if size >= SHARD_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(log)
        size += max(log.size, LEAST_BYTES)
    with progress("hash", total) if progress and logs else nullcontext(_silent) as show:
        contents = [one for found in spread(contents_of, portions, show) for one in found]
    return [replace(log, content=found) for log, found in zip(logs, contents, strict=True)]


def _portions(units: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    """Units put together by their order and size alone, one portion for a process at a time."""
    portions: list[list[Unit]] = []
    size = SHARD_BYTES
    for unit in units:
        if size >= SHARD_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(unit)
        for log in unit.logs:
            packed = log.place.endswith((".gz", ".zst"))
            size += log.size * (COMPRESSION_GUESS if packed else 1)
    return [tuple(portion) for portion in portions]


def _commit(
    table: Table, written: Sequence[File], mine: Sequence[tuple[str, str, str, str]]
) -> set[str]:
    """Put files into the table and take out what they replace.

    Returns
    -------
    set of str
        Names of the logs that another writer was faster with.
    """
    if not mine:
        return set()
    late: Judgement | None = None

    def prepare() -> Exchange:
        nonlocal late
        names = {name for name, *_ in mine}
        there = ledger.matching(table, names, {content for _, content, *_ in mine})
        late = judgement.judge([(n, c, x) for n, c, x, _ in mine], there)
        # Logs that were read together are dropped together, or not at all.
        stay = {intake for name, _, _, intake in mine if name not in late.dropped}
        late.dropped = {name for name, *_, intake in mine if intake not in stay}
        drop = {intake for *_, intake in mine} - stay
        keep = Exchange([], [])
        if drop:
            keep = without_intakes(table.address, written, drop)
        replaced = {row["intake"]: row for row in there.iter_rows(named=True)}
        old = [
            file
            for file in table.files()
            if any(
                same_place(file.values, _place(table, replaced[intake])) for intake in late.removed
            )
        ]
        gone = without_intakes(table.address, old, late.removed)
        left = [file for file in written if file not in keep.removed]
        return Exchange([*left, *keep.added, *gone.added], gone.removed)

    # What took long to make stays for the next try, if there has to be one.
    commit(table, prepare, "ingest", spared=frozenset(file.path for file in written))
    ledger.follow(table)
    assert late is not None
    return late.dropped


def _place(table: Table, row: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: row[name] for name in table.partition if name != layout.KIND}
