"""A Delta table whose files cczoo writes itself: Delta keeps the log of which ones are in it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from data.errors import UserError
from data.fleet.address import below, delta_options, filesystem, is_url

# Delta's library prints warnings of its own; what went wrong is raised.
os.environ.setdefault("RUST_LOG", "error")
WRITER = "cczoo"
"""Name under which each commit counts on, so that of two at once only one succeeds."""
CONFIGURATION = {"delta.checkpointInterval": "10"}
ATTEMPTS = 60
"""Tries to commit beside other writers before the command gives up."""
HOURS_OF_A_WRITER = 48
"""Age from which a file that no commit names is taken for a killed writer's."""


class Conflict(Exception):
    """Another writer has committed since the table was read."""


@dataclass(frozen=True)
class File:
    """A data file: its path in the table, bytes, rows, and its value of each partition column."""

    path: str
    size: int
    rows: int
    partition: tuple[tuple[str, str | None], ...]

    @property
    def values(self) -> dict[str, str | None]:
        """Partition column -> value."""
        return dict(self.partition)


class Table:
    """One state of a table; `reload` goes on to the newest.

    Raises
    ------
    UserError
        When there is none at the address.
    """

    def __init__(self, place: str) -> None:
        self.address = place
        self._listed: tuple[int, list[File]] | None = None
        self._open()

    def _open(self, version: int | None = None) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            self._delta = DeltaTable(
                self.address, version=version, storage_options=delta_options(self.address)
            )
        except TableNotFoundError:
            raise UserError(
                f"{self.address}: no store there: make one with `cczoo ingest LOGS --into STORE`"
            ) from None
        except (DeltaError, OSError) as error:
            raise _unreadable(self.address, error) from None

    def reload(self, version: int | None = None) -> None:
        """Go on to the newest state, or to the one of a version."""
        if version is None:
            self._delta.update_incremental()
        else:
            self._open(version)

    @property
    def version(self) -> int:
        """Number of the newest commit that this state has."""
        return int(self._delta.version())

    @property
    def id(self) -> str:
        """Name of the table that no other has."""
        return str(self._delta.metadata().id)

    @property
    def partition(self) -> list[str]:
        """Columns that the files are parted by."""
        return list(self._delta.metadata().partition_columns)

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return [field.name for field in self._delta.schema().fields]

    def files(self, **values: str) -> list[File]:
        """Files with these values of partition columns, by their paths."""
        asked = values.items()
        return [file for file in self._files() if asked <= file.values.items()]

    def _files(self) -> list[File]:
        if self._listed is not None and self._listed[0] == self.version:
            return self._listed[1]
        import pyarrow as pa

        columns = self.partition
        actions = pa.table(self._delta.get_add_actions(flatten=True)).to_pylist()
        found = [
            File(
                unquote(row["path"]),
                row["size_bytes"],
                row["num_records"],
                tuple((name, row[f"partition.{name}"]) for name in columns),
            )
            for row in actions
        ]
        found.sort(key=lambda file: file.path)
        self._listed = (self.version, found)
        return found

    def add_columns(self, names: Sequence[str], kind: str = "string") -> None:
        """Give the table further columns, null in all rows that it has."""
        from deltalake import Field
        from deltalake.exceptions import DeltaError
        from deltalake.schema import PrimitiveType

        for _ in range(ATTEMPTS):
            there = set(self.columns)
            fresh = [name for name in names if name not in there]
            if not fresh:
                return
            try:
                self._delta.alter.add_columns([Field(name, PrimitiveType(kind)) for name in fresh])
            except DeltaError:
                time.sleep(0.05)
            self.reload()

    def commit(
        self,
        added: Sequence[File],
        removed: Sequence[File],
        operation: str,
        changes_data: bool = True,
    ) -> int:
        """Add and remove files in one step, if nobody has committed since this state was read.

        Returns
        -------
        int
            The new version, which this object then shows.

        Raises
        ------
        Conflict
            When somebody has: reload, look again, and repeat.
        """
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction, RemoveAction

        now = int(time.time() * 1000)
        actions: list[Any] = [
            AddAction(file.path, file.size, file.values, now, changes_data, _statistics(file))
            for file in added
        ]
        actions += [
            RemoveAction(file.path, changes_data, now, file.size, file.values) for file in removed
        ]
        count = (self._delta.transaction_version(WRITER) or 0) + 1
        properties = CommitProperties(
            custom_metadata={WRITER: operation},
            max_commit_retries=0,
            app_transactions=[Transaction(WRITER, count)],
        )
        try:
            self._delta.create_write_transaction(
                actions,
                "append",
                self._delta.schema(),
                partition_by=self.partition,
                commit_properties=properties,
            )
        except CommitFailedError as error:
            raise Conflict(str(error)) from None
        self.reload()
        return self.version

    def operations(self, since: int) -> set[str]:
        """What the commits after a version did, by the names that `commit` was given."""
        if self.version == since:
            return set()
        newest = self._delta.history(self.version - since)
        return {str(one.get(WRITER)) for one in newest}

    def sweep(self, keep_hours: int, killed: bool = False) -> int:
        """Delete files that left the table ``keep_hours`` ago; returns how many.

        Parameters
        ----------
        keep_hours : int
            Commands that read an older state need its files as long as that.
        killed : bool
            Also delete what killed writers have left, once it is `HOURS_OF_A_WRITER` old.
        """
        gone = self._delta.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False)
        if killed:
            hours = max(keep_hours, HOURS_OF_A_WRITER)
            gone += self._delta.vacuum(
                hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        self.reload()
        return len(gone)

    def tidy_log(self) -> None:
        """Sum the log up in a checkpoint, and drop what is older than it keeps."""
        self._delta.create_checkpoint()
        self._delta.cleanup_metadata()

    def delete(self, files: Sequence[File]) -> None:
        """Delete files that were written and not committed."""
        found, root = filesystem(self.address)
        for file in files:
            if found.exists(path := below(root, file.path)):
                found.rm_file(path)


def _statistics(file: File) -> str:
    """Statistics for Delta's log: no least and greatest values, which would outlive their rows."""
    return f'{{"numRecords":{file.rows}}}'


def _unreadable(place: str, error: Exception) -> UserError:
    plain = re.sub(r"\x1b\[\d*m", "", str(error)).partition(" 0: <unknown>")[0]
    line = " ".join(plain.split())[:200]
    hint = ": check the address, and the keys in the environment" if is_url(place) else ""
    return UserError(f"{place}: can't be read as a store: {line}{hint}")


def exists(place: str) -> bool:
    """Whether there is a table at an address."""
    from deltalake import DeltaTable

    filesystem(place)  # says what is missing, before anything waits for a network
    try:
        return bool(DeltaTable.is_deltatable(place, storage_options=delta_options(place)))
    except OSError as error:
        raise _unreadable(place, error) from None


def create(place: str, schema: Any, partition: Sequence[str]) -> None:
    """Make an empty table; if another process makes it at the same time, that one stays."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if not is_url(place):
        from pathlib import Path

        from data.place import check_writable

        check_writable(Path(place))
    try:
        DeltaTable.create(
            place,
            schema=schema,
            mode="ignore",
            partition_by=list(partition),
            configuration=dict[str, str | None](CONFIGURATION),
            storage_options=delta_options(place),
        )
    except DeltaError:
        if not exists(place):
            raise


def same_place(one: Mapping[str, str | None], other: Mapping[str, str | None]) -> bool:
    """Whether two partitions differ in nothing but the kind of their rows."""
    return {k: v for k, v in one.items() if k != "kind"} == {
        k: v for k, v in other.items() if k != "kind"
    }
