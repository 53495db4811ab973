"""Rows leave a table by an exchange: files that hold them are written anew without them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import UserError
from data.fleet.files import Output, aligned, groups, schemas
from data.fleet.layout import INTAKE
from data.fleet.table import ATTEMPTS, Conflict, File, Table

Keep = Callable[[Any], Any]
"""Given an Arrow table with some columns of a group of rows, says which of them stay."""


@dataclass
class Exchange:
    """Files to add and to remove in one commit."""

    added: list[File]
    removed: list[File]


def without_intakes(place: str, files: Sequence[File], intakes: Collection[str]) -> Exchange:
    """Write the files that hold rows of some intakes anew, without these."""
    gone = pa.array(sorted(intakes), pa.string())

    def keep(rows: Any) -> Any:
        return pc.invert(pc.is_in(rows[INTAKE], value_set=gone))

    return without(place, files, (INTAKE,), keep)


def without(place: str, files: Sequence[File], columns: Sequence[str], keep: Keep) -> Exchange:
    """Write the files that hold rows to be dropped anew, without these.

    Parameters
    ----------
    place : str
        Address of the table.
    files : sequence of File
        Files that may hold such rows.
    columns : sequence of str
        Columns that ``keep`` looks at.
    keep : callable
        See `Keep`.
    """
    return rewritten(place, files, columns, keep, lambda rows: rows.filter(keep(rows)))


def rewritten(
    place: str,
    files: Sequence[File],
    columns: Sequence[str],
    keep: Keep,
    change: Callable[[Any], Any],
) -> Exchange:
    """Write the files that hold rows which don't stay as they are anew.

    Parameters
    ----------
    place, files, columns, keep
        As for `without`.
    change : callable
        Gives the rows of a group as they shall be.
    """
    output = Output(place)
    removed = [
        file
        for file in files
        if any(pc.all(keep(rows)).as_py() is False for rows in groups(place, file, columns))
    ]
    shapes = schemas(place, removed)
    try:
        for file in removed:
            for rows in groups(place, file):
                left = change(rows)
                if left.num_rows:
                    output.add(file.partition, aligned(left, shapes[file.partition]))
        return Exchange(output.close(), removed)
    except BaseException:
        output.abandon()
        raise


def commit(
    table: Table,
    prepare: Callable[[], Exchange],
    operation: str,
    changes_data: bool = True,
    spared: Collection[str] = frozenset(),
) -> Exchange:
    """Commit what ``prepare`` makes of the table's state, as often as it takes.

    Parameters
    ----------
    table : Table
        It is brought to its newest state each time before ``prepare`` is called.
    prepare : callable
        Writes files; those that can't be committed are deleted again.
    operation : str
        What is done, for the table's history.
    changes_data : bool
        False where the same rows are only written in another way.
    spared : collection of str
        Paths of files that aren't deleted where they can't be committed.

    Raises
    ------
    UserError
        When other writers are always faster.
    """
    for attempt in range(ATTEMPTS):
        table.reload()
        exchange = prepare()
        if not exchange.added and not exchange.removed:
            return exchange
        try:
            table.commit(exchange.added, exchange.removed, operation, changes_data)
            return exchange
        except Conflict:
            table.delete([file for file in exchange.added if file.path not in spared])
            time.sleep(random.uniform(0, 0.02 * min(attempt + 1, 20)))
        except BaseException:
            table.delete([file for file in exchange.added if file.path not in spared])
            raise
    raise UserError(f"{table.address}: other writers are always faster: try again later")
