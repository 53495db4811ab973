"""Features follow a store: each file of connections has one file of features per settings.

So names alone tell what is new, what has none with these settings, and what is of logs that are no
longer there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from data.errors import UserError
from data.fleet import select
from data.fleet import table as tables
from data.fleet.address import below, whole
from data.fleet.change import Exchange, commit
from data.fleet.ingest import Spread
from data.fleet.layout import CONNECTION_KIND, DAY, INTAKE, KIND
from data.fleet.table import File, Table
from data.fleet.where import Where
from data.pool import Show
from pipelines.feature_rows import KEPT_ATTRIBUTES
from pipelines.fleet.computing import Between, Made, Task, compute, stem
from pipelines.fleet.kinds import Computed, Kind, settings_hash
from pipelines.output import progress_bytes

SETTINGS = "settings"
NAME = 32
"""Characters by which a file of features begins: the name of its file of connections."""
PORTION = 128
"""Files of connections whose features are committed together."""


@dataclass
class Followed:
    """What a run has done, the hash of its settings, and the version of the logs that it saw."""

    settings: str
    version: int
    computed: Computed = field(default_factory=Computed)
    connections: int = 0
    kept: int = 0


def follow(store: str, kind: Kind, spread: Spread, where: Where | None = None) -> Followed:
    """Compute the features of all connections that have none with these settings.

    Rows of connections that were only written to another file (`cczoo store compact`, or another
    log of the same file was replaced) are kept as they are. What is done is committed in portions:
    a run that was killed goes on from there.

    Parameters
    ----------
    store : str
        Address.
    kind : Kind
        What is computed.
    spread : callable
        See `data.fleet.ingest.Spread`.
    where : Where, optional
        Days, and values of labels that part the store, to which to keep.

    Raises
    ------
    UserError
        When the condition is about anything else.
    """
    where = where or Where()
    logs = select.open_logs(store)
    found = Followed(settings_hash(kind), logs.version)
    files = _asked(logs, where)
    labels = logs.partition[2:]
    others = [name for name in select.attributes(logs) if name not in labels]
    extra = kind.kept(labels, others, store)
    table = _opened(whole(store), kind, labels, extra)
    current = _stems(logs)
    between = Between(logs.address, table.address, kind, tuple(extra))
    tasks = _tasks(between, table, found.settings, files, current)
    remaining = iter(tasks)
    with progress_bytes("features", sum(task.file.size for task in tasks)) as show:
        shown = 0
        while portion := list(islice(remaining, PORTION)):
            made: list[Made] = spread(compute, portion, _from(shown, show))
            _commit(table, made)
            _withdraw(table, logs, found.version, made)
            shown += sum(task.file.size for task in portion)
            for one in made:
                found.computed.add(one.computed)
                found.connections += one.connections
                found.kept += one.kept
    own = where.files(table.files(**{SETTINGS: found.settings}))
    _drop(table, [file.path for file in own if stem(file)[:NAME] not in current], "features")
    return found


def _stems(logs: Table) -> set[str]:
    return {stem(file) for file in logs.files(**{KIND: CONNECTION_KIND})}


def _asked(logs: Table, where: Where) -> list[File]:
    """Files of connections for which a condition holds; it can't be about a part of a file."""
    parted = [name for name in logs.partition if name != KIND]
    where.check(select.known_columns(logs))
    if other := [name for name in where.columns if name not in parted]:
        raise UserError(
            f"--where {where.text!r}: features are computed by whole files, which {other[0]!r} "
            f"doesn't tell apart: use {' and '.join(parted)} here, and the rest where they are read"
        )
    return where.files(logs.files(**{KIND: CONNECTION_KIND}))


def _tasks(
    between: Between, table: Table, own: str, files: Sequence[File], current: set[str]
) -> list[Task]:
    """A task for each file that has no features with these settings."""
    there = table.files(**{SETTINGS: own})
    done = {stem(file)[:NAME] for file in there}
    stale: dict[Any, list[File]] = defaultdict(list)
    for file in there:
        if stem(file)[:NAME] not in current:
            stale[file.partition].append(file)
    tasks = []
    for file in files:
        if stem(file) not in done:
            values = {**file.values, SETTINGS: own}
            place = tuple((name, values[name]) for name in table.partition)
            old = tuple(stale.get(place, ()))
            tasks.append(Task(between, file, place, old))
    return tasks


def _from(before: int, show: Show) -> Show:
    """Progress of a portion, counted from where the one before has ended."""
    return lambda read: show(before + read)


def _opened(store: str, kind: Kind, labels: Sequence[str], extra: Sequence[str]) -> Table:
    """The table of features, with all columns that the store's connections need."""
    place, own = below(store, kind.table), kind.schema()
    if not tables.exists(place):
        partition = [SETTINGS, DAY, *labels]
        texts = [*partition, INTAKE, *KEPT_ATTRIBUTES, *extra]
        schema = pa.schema([*(pa.field(name, pa.string()) for name in texts), *own])
        tables.create(place, schema, partition)
    table = Table(place)
    table.add_columns(extra)
    table.add_columns([column.name for column in own if column.type == pa.float64()], "double")
    return table


def _commit(table: Table, made: Sequence[Made]) -> None:
    """Add files of features, but those that another run has added meanwhile."""

    def prepare() -> Exchange:
        done = {(stem(file)[:NAME], file.values[SETTINGS]) for file in table.files()}
        names = {(stem(one.file)[:NAME], one.file.values[SETTINGS]): one.file for one in made}
        return Exchange([file for key, file in names.items() if key not in done], [])

    commit(table, prepare, "features")


def _withdraw(table: Table, logs: Table, began: int, made: Sequence[Made]) -> None:
    """Take features back whose connections were forgotten while they were computed."""
    logs.reload()
    if "forget" in logs.operations(began):
        current = _stems(logs)
        gone = [one.file.path for one in made if stem(one.file)[:NAME] not in current]
        if _drop(table, gone, "forget"):
            table.sweep(0)


def _drop(table: Table, paths: Sequence[str], operation: str) -> int:
    """Remove files; returns how many there were."""
    gone = set(paths)

    def prepare() -> Exchange:
        return Exchange([], [file for file in table.files() if file.path in gone])

    return len(commit(table, prepare, operation).removed)


def current_files(store: str, name: str, words: str) -> tuple[Table, list[File], int]:
    """Files of features of the store's present connections, and how many of these lack some.

    Parameters
    ----------
    store : str
        Address.
    name, words : str
        The table, and what comes after ``cczoo features`` to make it.

    Returns
    -------
    table : Table
    files : list of File
        With any settings.
    lacking : int
        Files of connections without features of any settings.
    """
    logs = select.open_logs(store)
    place = below(whole(store), name)
    if not tables.exists(place):
        raise UserError(f"{store}: has no {name} yet: run `cczoo features {words} --store {store}`")
    table = Table(place)
    stems = _stems(logs)
    files = [file for file in table.files() if stem(file)[:NAME] in stems]
    return table, files, len(stems - {stem(file)[:NAME] for file in files})
