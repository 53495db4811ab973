"""Connections with their events, as rows of a table and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from data.fleet.layout import INTAKE, RUN, connection_schema
from data.schema import CONNECTIONS
from data.store import VARIABLE_NAMES, Ints, Series

Run = tuple[int, int, Ints, Ints]
"""Number of the subflow and of the variable, times and values."""


def joined(pieces: list[Run]) -> list[Run]:
    """Runs of which no two are of one subflow and variable: neighbours that are become one."""
    found: list[Run] = []
    at = 0
    while at < len(pieces):
        end = at + 1
        while end < len(pieces) and pieces[end][:2] == pieces[at][:2]:
            end += 1
        same = pieces[at:end]
        times, values = (np.concatenate([piece[i] for piece in same]) for i in (2, 3))
        found.append((*pieces[at][:2], times, values))
        at = end
    return found


def rows(
    connections: Sequence[dict[str, Any]], runs: Sequence[list[Run]], extra: Sequence[str]
) -> Any:
    """Arrow table of connections, each with its own runs."""
    schema = connection_schema(extra)
    flat = [run for one in runs for run in one]
    column = pa.ListArray.from_arrays(_ends([len(one) for one in runs]), _runs(flat), type=None)
    columns = [
        column.cast(schema.field(name).type)
        if name == "runs"
        else pa.array([row.get(name) for row in connections], schema.field(name).type)
        for name in schema.names
    ]
    return pa.table(columns, schema=schema)


def _ends(sizes: Sequence[int]) -> Any:
    return pa.array(np.cumsum([0, *sizes]).astype(np.int32))


def _runs(flat: Sequence[Run]) -> Any:
    ends = _ends([len(run[2]) for run in flat])
    empty = np.empty(0, np.int64)
    times, values = (np.concatenate([empty, *(run[i] for run in flat)]) for i in (2, 3))
    columns = [
        pa.array([run[0] for run in flat], pa.int16()),
        pa.array([VARIABLE_NAMES[run[1]] for run in flat], pa.string()),
        pa.ListArray.from_arrays(ends, pa.array(times)).cast(RUN.field("time_us").type),
        pa.ListArray.from_arrays(ends, pa.array(values)).cast(RUN.field("value").type),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(RUN))


def connections_of(
    table: Any, attributes: Sequence[str]
) -> Iterator[tuple[dict[str, Any], Series]]:
    """Each connection of an Arrow table as `data.store.iter_connections` gives it.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of a file of connections.
    attributes : sequence of str
        Columns of attributes; a row has None for those that the file lacks.
    """
    names = [*CONNECTIONS.names, *attributes]
    there = [name for name in (INTAKE, *names) if name in table.column_names]
    heads = table.select(there).to_pylist()
    runs = table["runs"].combine_chunks()
    flat = runs.flatten()
    subflow = flat.field("subflow").to_pylist()
    variable = flat.field("variable").to_pylist()
    ends = [flat.field(name).offsets.to_numpy() for name in ("time_us", "value")]
    numbers = [flat.field(name).values.to_numpy() for name in ("time_us", "value")]
    first = np.cumsum([0, *(len(one) for one in runs)])
    for number, head in enumerate(heads):
        series: Series = {}
        for i in range(int(first[number]), int(first[number + 1])):
            times, values = (
                values[end[i] : end[i + 1]] for values, end in zip(numbers, ends, strict=True)
            )
            series.setdefault(subflow[i], {})[variable[i]] = (times, values)
        yield {name: head.get(name) for name in (INTAKE, *names)}, series
