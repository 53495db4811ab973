"""Features follow a store: each file of connections has one file of features per settings."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from data.errors import UserError
from data.fleet import select
from data.fleet import table as tables
from data.fleet.address import below, whole
from data.fleet.change import Exchange, commit
from data.fleet.files import Output, Partition, groups
from data.fleet.ingest import Spread
from data.fleet.layout import CONNECTION_KIND, DAY, INTAKE, KIND
from data.fleet.table import File, Table
from data.pool import Show
from features.params import SbdParams
from models.sbd.computed_with import recorded
from pipelines import feature_rows
from pipelines.feature_rows import KEPT_ATTRIBUTES
from pipelines.output import progress_bytes

SETTINGS = "settings"
NAME = 32
"""Characters by which a file of features begins: the name of its file of connections."""
PORTION = 128
"""Files of connections whose features are committed together."""
ROWS = 4096
"""Rows of features that are in memory at once, and more where a connection has more."""


@dataclass(frozen=True)
class Task:
    """A file of connections whose features are to be computed, and old rows that may serve."""

    logs: str
    features: str
    file: File
    stale: tuple[File, ...]
    what: str
    params: SbdParams
    partition: Partition
    extra: tuple[str, ...]


@dataclass
class Made:
    """A file of features; counts of windows and connections computed, and of windows kept."""

    file: File
    windows: int
    connections: int
    kept: int


def settings_hash(what: str, params: SbdParams) -> str:
    """Hash of whatever the rows of a table depend on: settings, and definitions of the features."""
    text = json.dumps(recorded(what, params), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def follow(store: str, what: str, params: SbdParams, spread: Spread) -> dict[str, Any]:
    """Compute the features of all connections that have none with these settings.

    Rows of connections that were only written to another file (`cczoo store compact`, or another
    log of the same file was replaced) are kept as they are. What is done is committed in portions:
    a run that was killed goes on from there.

    Parameters
    ----------
    store : str
        Address.
    what : str
        Kind of table, a key of `features.sbd.TABLES`.
    params : SbdParams
        Settings of windows.
    spread : callable
        See `data.fleet.ingest.Spread`.

    Returns
    -------
    dict
        ``windows`` and ``connections`` computed, ``windows_kept``, ``settings``, and the
        ``version`` of the store's logs that the features are of.
    """
    logs = select.open_logs(store)
    own = settings_hash(what, params)
    table = _opened(whole(store), what, logs)
    files = logs.files(**{KIND: CONNECTION_KIND})
    current = {_stem(file) for file in files}
    there = table.files()
    done = {_stem(file)[:NAME] for file in there if file.values[SETTINGS] == own}
    stale: dict[Any, list[File]] = defaultdict(list)
    for file in there:
        if file.values[SETTINGS] == own and _stem(file)[:NAME] not in current:
            stale[file.partition].append(file)
    tasks = []
    for file in files:
        if _stem(file) not in done:
            place = _partition(table, file, own)
            tasks.append(
                Task(
                    logs.address,
                    table.address,
                    file,
                    tuple(stale.get(place, ())),
                    what,
                    params,
                    place,
                    tuple(select.attributes(logs)),
                )
            )
    counts: Counter[str] = Counter(windows=0, connections=0, windows_kept=0)
    remaining = iter(tasks)
    total = sum(task.file.size for task in tasks)
    with progress_bytes("features", total) as show:
        shown = 0
        while portion := list(islice(remaining, PORTION)):
            made: list[Made] = spread(compute, portion, _from(shown, show))
            _commit(table, made, current, last=False)
            shown += sum(task.file.size for task in portion)
            for one in made:
                counts.update(
                    windows=one.windows, connections=one.connections, windows_kept=one.kept
                )
    _commit(table, [], current, last=True)
    return {**counts, "settings": own, "version": logs.version}


def _from(before: int, show: Show) -> Show:
    """Progress of a portion, counted from where the one before has ended."""
    return lambda read: show(before + read)


def _stem(file: File) -> str:
    return file.path.rpartition("/")[2].removesuffix(".parquet")


def _partition(table: Table, file: File, settings: str) -> Partition:
    values = {**file.values, SETTINGS: settings}
    return tuple((name, values[name]) for name in table.partition)


def _opened(store: str, what: str, logs: Table) -> Table:
    """The table of features, with all columns that the store's connections need."""
    import pyarrow as pa

    place = below(store, what)
    labels = logs.partition[2:]
    extra = [name for name in select.attributes(logs) if name not in labels]
    names = feature_rows.feature_names(what)
    feature_rows.check_attributes([*labels, *extra], names, store)
    if not tables.exists(place):
        partition = [SETTINGS, DAY, *labels]
        texts = [*partition, INTAKE, *KEPT_ATTRIBUTES, *extra]
        schema = pa.schema(
            [
                *(pa.field(name, pa.string()) for name in texts),
                *pa.table(pl.DataFrame(schema=feature_rows.FIXED)).cast(_plain()).schema,
                *(pa.field(name, pa.float64()) for name in names),
            ]
        )
        tables.create(place, schema, partition)
    table = Table(place)
    table.add_columns(extra)
    table.add_columns(names, "double")
    return table


def _plain() -> Any:
    """Fixed columns with the types that every reader of Delta knows."""
    import pyarrow as pa

    kinds = {str: pa.string(), int: pa.int64()}
    return pa.schema([pa.field(name, kinds[kind]) for name, kind in feature_rows.FIXED.items()])


def _commit(table: Table, made: Sequence[Made], current: set[str], last: bool) -> None:
    """Add files of features, and at the end remove those whose connections are elsewhere now."""

    def prepare() -> Exchange:
        there = table.files()
        done = {(_stem(file)[:NAME], file.values[SETTINGS]) for file in there}
        added = [
            one.file
            for one in made
            if (_stem(one.file)[:NAME], one.file.values[SETTINGS]) not in done
        ]
        gone = [file for file in there if last and _stem(file)[:NAME] not in current]
        return Exchange(added, gone)

    commit(table, prepare, "features")


def compute(task: Task, count: Callable[[int], None]) -> Made:
    """Compute the features of one file of connections: the work of a process."""
    wanted = {
        name: intake
        for rows in groups(task.logs, task.file, ("connection", INTAKE))
        for name, intake in zip(*(rows[n].to_pylist() for n in ("connection", INTAKE)), strict=True)
    }
    metadata = recorded(task.what, task.params)
    name = f"{_stem(task.file)}-{uuid.uuid4().hex[:8]}"
    output = Output(task.features, name, metadata)
    try:
        kept: set[str] = set()
        windows_kept = 0
        for file in task.stale:
            for rows in groups(task.features, file):
                frame = pl.from_arrow(rows)
                assert isinstance(frame, pl.DataFrame)
                frame = frame.filter(
                    pl.struct("connection", INTAKE).map_elements(
                        lambda row: wanted.get(row["connection"]) == row[INTAKE],
                        return_dtype=pl.Boolean,
                    )
                )
                kept |= set(frame["connection"].to_list())
                windows_kept += len(frame)
                if len(frame):
                    output.add(task.partition, _arrow(frame))
        windows = _compute(task, {name for name in wanted if name not in kept}, output)
        made = output.close()
    except BaseException:
        output.abandon()
        raise
    count(task.file.size)
    return Made(made[0], windows, len(wanted) - len(kept), windows_kept)


def _compute(task: Task, wanted: set[str], output: Output) -> int:
    """Compute and write the windows of some connections of a file; returns how many there are."""
    names = feature_rows.feature_names(task.what)
    partition = {name for name, _ in task.partition}
    attributes = [
        *KEPT_ATTRIBUTES, *(name for name in task.extra if name not in partition), INTAKE
    ]  # fmt: skip
    total = 0

    def rows() -> Iterator[Any]:
        for row, series in select.connections(task.logs, task.file, task.extra) if wanted else ():
            if row["connection"] in wanted:
                yield row, series

    empty = np.empty((0, len(names)))
    none = pl.DataFrame(schema=dict.fromkeys(["connection", *attributes], pl.String))
    # The first piece has no rows, so that a file without windows is one nevertheless.
    held: list[Any] = [([], empty, none)]
    for batch in feature_rows.in_batches(rows()):
        heads, values, _ = feature_rows.compute_batch(batch, task.params, task.what)
        own = pl.DataFrame(
            [{name: row.get(name) for name in ("connection", *attributes)} for row, _ in batch],
            schema=none.schema,
        )
        held.append((heads, values, own))
        if sum(len(one[0]) for one in held) >= ROWS:
            total += _write(held, names, task.partition, output)
            held = []
    return total + (_write(held, names, task.partition, output) if held else 0)


def _write(held: list[Any], names: list[str], partition: Partition, output: Output) -> int:
    heads = [head for one in held for head in one[0]]
    values = np.concatenate([one[1] for one in held])
    frame = feature_rows.joined(heads, values, names, pl.concat([one[2] for one in held]))
    output.add(partition, _arrow(frame))
    return len(frame)


def _arrow(frame: pl.DataFrame) -> Any:
    import pyarrow as pa
    from polars.interchange import CompatLevel

    found = frame.to_arrow(compat_level=CompatLevel.oldest())
    kinds = [
        pa.string() if pa.types.is_large_string(field.type) else field.type
        for field in found.schema
    ]
    return found.cast(pa.schema(list(zip(found.column_names, kinds, strict=True))))


def current_files(store: str, what: str) -> tuple[Table, list[File], int]:
    """Files of features of the store's present connections, and how many of these lack some.

    Returns
    -------
    table : Table
    files : list of File
        With any settings.
    lacking : int
        Files of connections without features of any settings.
    """
    logs = select.open_logs(store)
    place = below(whole(store), what)
    if not tables.exists(place):
        raise UserError(
            f"{store}: has no features yet: run `cczoo features {what} --store {store}`"
        )
    table = Table(place)
    stems = {_stem(file) for file in logs.files(**{KIND: CONNECTION_KIND})}
    files = [file for file in table.files() if _stem(file)[:NAME] in stems]
    return table, files, len(stems - {_stem(file)[:NAME] for file in files})
