"""Logs leave a store, and its many small files become few."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from data.errors import UserError
from data.fleet import ledger
from data.fleet.address import below, whole
from data.fleet.change import Exchange, commit, without_intakes
from data.fleet.files import FILE_BYTES, Output, aligned, groups, schemas
from data.fleet.layout import INTAKE, KIND
from data.fleet.select import open_logs
from data.fleet.table import File, Table, exists

FEW_BYTES = FILE_BYTES // 2
"""A file on disk of more is left as it is when a store is compacted."""


def remove(store: str, names: Sequence[str], features: Sequence[str] = ()) -> dict[str, Any]:
    """Take logs out of a store, with their features; they can be taken again.

    Parameters
    ----------
    store : str
        Address.
    names : sequence of str
        Names of logs, or patterns with ``*``.
    features : sequence of str
        Names of the tables of features that the store may have.

    Raises
    ------
    UserError
        When a name fits none.
    """
    table = open_logs(store)
    gone: dict[str, str] = {}

    def prepare() -> Exchange:
        gone.clear()
        hit = set()
        places = set()
        for frame in ledger.rows(table):
            for row in frame.iter_rows(named=True):
                if fits := [name for name in names if fnmatch.fnmatchcase(row["source"], name)]:
                    hit.update(fits)
                    gone[row["source"]] = row[INTAKE]
                    places.add(tuple(row[name] for name in table.partition if name != KIND))
        if missing := sorted(set(names) - hit):
            raise UserError(
                f"{store}: no log is named {missing[0]!r}: `cczoo store list {store} --logs` "
                "has their names; patterns take *"
            )
        files = [
            f for f in table.files() if tuple(v for k, v in f.partition if k != KIND) in places
        ]
        return without_intakes(table.address, files, set(gone.values()))

    commit(table, prepare, "remove")
    for name in features:
        if exists(place := below(whole(store), name)):
            other, intakes = Table(place), set(gone.values())
            commit(other, partial(_without, other, intakes), "remove")
    return {"logs": sorted(gone), "version": table.version}


def _without(table: Table, intakes: set[str]) -> Exchange:
    return without_intakes(table.address, table.files(), intakes)


def compact(store: str, keep_days: int, features: Sequence[str] = ()) -> dict[str, Any]:
    """Put small files of each partition together, and delete files that left the store long ago.

    Parameters
    ----------
    store : str
        Address.
    keep_days : int
        Files that are no longer in the store stay for so long, for commands that read an older
        state.
    features : sequence of str
        Names of the tables of features that the store may have, whose old files go too.
    """
    table = open_logs(store)
    before = len(table.files())
    exchanged: list[Exchange] = []
    for partition in sorted(_small(table.files())):

        def prepare(partition: Any = partition) -> Exchange:
            files = _small(table.files()).get(partition, [])
            if not files:
                return Exchange([], [])
            output, shapes = Output(table.address), schemas(table.address, files)
            for file in files:
                for rows in groups(table.address, file):
                    output.add(file.partition, aligned(rows, shapes[file.partition]))
            return Exchange(output.close(), files)

        exchanged.append(commit(table, prepare, "compact", changes_data=False))
    table.tidy_log()
    gone = table.sweep(24 * keep_days, killed=True)
    for name in features:
        if exists(place := below(whole(store), name)):
            other = Table(place)
            other.tidy_log()
            gone += other.sweep(24 * keep_days, killed=True)
    return {
        "files_before": before,
        "files": len(table.files()),
        "files_deleted": gone,
        "version": table.version,
    }


def _small(files: Sequence[File]) -> dict[Any, list[File]]:
    """Small files by their partitions, if these have two or more of them."""
    found: dict[Any, list[File]] = defaultdict(list)
    for file in files:
        if file.size < FEW_BYTES:
            found[tuple((name, value or "") for name, value in file.partition)].append(file)
    return {partition: own for partition, own in found.items() if len(own) > 1}
