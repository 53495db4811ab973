"""A store holds one Delta table of logs, and one for each table of features.

::

    logs/           kind=source       one row per log: its name, its content's hash, its counts
                    kind=connection   one row per connection, with all its events
                    kind=quarantine   lines that could not be understood, and why
                    _ledger.parquet   names and hashes of the logs of many files: data.fleet.index
    sbd/, series/   features, in files that each belong to one file of connections

Columns, types and units of connections, events and the quarantine are those of ``data.schema``; a
connection's row holds its events as runs of one subflow and variable. All kinds are in one table
because a commit to one table is atomic: a log is there with all its rows, or not at all. Every row
has the ``intake`` that it came with: the hash of the contents, names, labels and settings of the
logs that were read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from data.schema import CONNECTIONS, QUARANTINE

LOGS = "logs"
KIND, DAY, INTAKE = "kind", "day", "intake"
SOURCE_KIND, CONNECTION_KIND, QUARANTINE_KIND = "source", "connection", "quarantine"

COUNTS = (
    "lines_read", "event_lines", "skipped_lines", "quarantined_lines", "bytes", "backwards_lines",
    "damaged_sources", "connections", "subflows", "events", "forgotten_connections",
)  # fmt: skip
"""Counts of a log; the first is always the sum of the next three."""

RUN = pa.struct(
    [
        pa.field("subflow", pa.int16()),
        pa.field("variable", pa.string()),
        pa.field("time_us", pa.list_(pa.int64())),
        pa.field("value", pa.list_(pa.int64())),
    ]
)
"""All events of one subflow and variable, times ascending."""

SOURCE = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field(INTAKE, pa.string()),
        pa.field("content", pa.string()),
        pa.field("unit", pa.string()),
        pa.field("stamp", pa.string()),
        pa.field("context", pa.string()),
        pa.field("format", pa.string()),
        pa.field("counts", pa.struct([pa.field(name, pa.int64()) for name in COUNTS])),
    ]
)
"""``stamp`` (size and time of change) spares reading an unchanged log again; ``context`` is the
hash of its labels and of the settings; ``unit`` is what it was read together with."""

_CONNECTIONS = pa.schema(CONNECTIONS)
_QUARANTINE = pa.schema(QUARANTINE)


def connection_schema(extra: Sequence[str]) -> Any:
    """Columns of connections' files; ``extra`` are those of labels files that make no partition."""
    labels = [pa.field(name, pa.string()) for name in extra]
    events = pa.field("runs", pa.list_(RUN))
    return pa.schema([pa.field(INTAKE, pa.string()), *_CONNECTIONS, *labels, events])


def quarantine_schema() -> Any:
    """Columns of the quarantine's files."""
    return pa.schema([pa.field(INTAKE, pa.string()), *_QUARANTINE])


def table_schema(partition: Sequence[str], extra: Sequence[str]) -> Any:
    """Columns of the whole table: those of all kinds, each once."""
    fields = {name: pa.field(name, pa.string()) for name in partition}
    for schema in (SOURCE, connection_schema(extra), quarantine_schema()):
        for field in schema:
            fields.setdefault(field.name, field)
    return pa.schema(list(fields.values()))


FIXED = frozenset(table_schema((KIND, DAY), ()).names)
"""Columns that every store has; the others are attributes out of labels files."""
