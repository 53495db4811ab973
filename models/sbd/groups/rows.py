"""Rows of a features table are brought together group by group, in one pass and little memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from polars.interchange import CompatLevel

from data.errors import UserError
from data.files import file_hash
from data.fleet.selection import selection_of
from models.sbd.groups import labels
from models.sbd.groups.own import places
from models.sbd.windows import KEY

BATCH = 65_536
"""Rows of the table that are in memory at once."""
GROUP = "group="
"""Column of a row's group; no attribute can have this name, as labels give it."""


@dataclass
class Gathered:
    """A features table as groups.

    Attributes
    ----------
    path : Path
        Arrow file with one record batch per run of rows of a group.
    runs : dict
        Group -> numbers of its record batches.
    counts : dict
        Group -> rows.
    values : dict
        Group -> attribute -> value; empty for groups that don't come from columns.
    sample : polars.DataFrame
        Rows of whole connections, about as many as asked for, drawn by the connections' names.
    rows, without : int
        All rows, and those in no group.
    """

    path: Path
    runs: dict[str, list[int]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    sample: pl.DataFrame = field(default_factory=pl.DataFrame)
    rows: int = 0
    without: int = 0

    def largest_first(self) -> list[str]:
        """Groups in the order in which they are best worked on."""
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))

    def frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Rows of some groups, one group after the other."""
        with pa.OSFile(str(self.path)) as file, pa.ipc.open_file(file) as reader:
            for name in names:
                parts = [reader.get_batch(i) for i in self.runs[name]]
                frame = pl.from_arrow(pa.Table.from_batches(parts))
                assert isinstance(frame, pl.DataFrame)
                yield frame


def open_table(path: Path) -> Any:
    """A features file, or a directory of them (also ``column=value/`` below it).

    Returns
    -------
    pyarrow.dataset.Dataset

    Raises
    ------
    UserError
        When there is none, it isn't Parquet or lacks the key columns.
    """
    if not path.exists():
        raise UserError(f"{path}: no such features table: make it with `cczoo features sbd`")
    try:
        table = ds.dataset(path, format="parquet", partitioning="hive")
        if not table.files:
            raise UserError(f"{path}: no Parquet file in it: give a table of `cczoo features sbd`")
        table.count_rows()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: not readable Parquet: {reason}") from None
    missing = [name for name in ("connection", "window") if name not in table.schema.names]
    if missing:
        raise UserError(
            f"{path}: no column {missing[0]!r}: this isn't a table of `cczoo features sbd`"
        )
    return table


def table_hash(path: Path) -> str:
    """SHA-256 of a features file, or over names and hashes of a directory's files.

    A selection of a store has its own hash, which doesn't depend on how its rows are ordered.
    """
    if (selected := selection_of(path)) is not None:
        return selected.fingerprint
    if path.is_file():
        return file_hash(path)
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.parquet")):
        digest.update(f"{file.relative_to(path)}\t{file_hash(file)}\n".encode())
    return digest.hexdigest()


def gather(
    path: Path,
    columns: Sequence[str],
    features: Sequence[str],
    sample: int,
    into: Path,
    added: Mapping[str, Mapping[str, str]] | None = None,
) -> Gathered:
    """Read a features table once and write its rows group by group.

    Parameters
    ----------
    path : Path
        See `open_table`.
    columns : sequence of str
        Attributes that make the groups.
    features : sequence of str
        Columns to keep besides keys and attributes.
    sample : int
        Rows to draw for the pooled model.
    into : Path
        Arrow file to write; one that is there is replaced.
    added : mapping, optional
        Attributes that the table doesn't have: name -> connection -> value.

    Raises
    ------
    UserError
        When a column is missing or no attribute, changes within a connection, or no row is in a
        group.
    """
    table, added = open_table(path), added or {}
    labels.check_columns([*table.schema.names, *added], columns)
    missing = [name for name in features if name not in table.schema.names]
    if missing:
        raise UserError(
            f"{path}: no column {missing[0]!r} ({len(missing)} missing): make it with this "
            "version's `cczoo features sbd`"
        )
    keep = [n for n in KEY if n in table.schema.names]
    keep += [n for n in labels.attribute_columns(table.schema.names) if n not in keep] + [*features]
    found = Gathered(into, rows=table.count_rows())
    share = min(1.0, sample / max(1, found.rows))
    drawn: list[pl.DataFrame] = []
    into.parent.mkdir(parents=True, exist_ok=True)
    part = into.with_name(f"{into.name}.part")
    try:
        with pa.OSFile(str(part), "wb") as sink:
            writer, number = None, 0
            for frame in _batches(table, keep):
                for name, mapping in added.items():
                    value = pl.col("connection").replace_strict(
                        mapping, default=None, return_dtype=pl.String
                    )
                    frame = frame.with_columns(value.alias(name))
                frame = frame.with_columns(labels.label(columns).alias(GROUP))
                labels.check_constant(frame.select("connection", GROUP))
                chosen = places(frame["connection"].to_numpy(), "sample") < share
                drawn.append(frame.filter(pl.Series(chosen)).drop(GROUP))
                found.without += frame[GROUP].null_count()
                for one in frame.drop_nulls(GROUP).partition_by(GROUP):
                    name = one[GROUP][0]
                    arrow = one.drop(GROUP).to_arrow(compat_level=CompatLevel.oldest())
                    writer = writer or pa.ipc.new_file(sink, arrow.schema)
                    for batch in arrow.combine_chunks().to_batches():
                        writer.write_batch(batch)
                        found.runs.setdefault(name, []).append(number)
                        number += 1
                    found.counts[name] = found.counts.get(name, 0) + len(one)
                    if name not in found.values:
                        found.values[name] = {c: str(one[c][0]) for c in columns}
            if writer is None:
                raise UserError(
                    f"{path}: no connection has a value of {', '.join(columns)}: nothing to group "
                    "by; give attributes in the labels file of `cczoo ingest`, or --groups auto"
                )
            writer.close()
        part.replace(into)
    finally:
        part.unlink(missing_ok=True)
    found.sample = pl.concat(drawn)
    return found


def _batches(table: Any, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Frames of a data set, columns that aren't numbers as text, so that all have one schema."""
    scanner = table.scanner(
        columns=list(columns),
        batch_size=BATCH,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
        # Else all bytes of a file are fetched ahead and kept until its end.
        fragment_scan_options=ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        ),
    )
    held: list[pl.DataFrame] = []
    for batch in scanner.to_batches():
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        held.append(frame.with_columns((~pl.selectors.numeric()).cast(pl.String)))
        if sum(map(len, held)) >= BATCH:
            yield pl.concat(held)
            held = []
    if held and any(map(len, held)):
        yield pl.concat(held)
