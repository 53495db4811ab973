"""A file of connections becomes a file of features: the work of one process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from data.fleet import select
from data.fleet.files import Output, Partition, aligned, groups
from data.fleet.layout import INTAKE
from data.fleet.table import File
from pipelines.feature_rows import KEPT_ATTRIBUTES
from pipelines.fleet.kinds import Computed, Connections, Kind


@dataclass(frozen=True)
class Between:
    """Two tables, what is computed from one to the other, and attributes that go along."""

    logs: str
    features: str
    kind: Kind
    extra: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A file of connections whose features are to be computed, and old rows that may serve."""

    between: Between
    file: File
    partition: Partition
    stale: tuple[File, ...]


@dataclass
class Made:
    """A file of features; counts of connections computed, and of rows kept."""

    file: File
    computed: Computed
    connections: int
    kept: int


def stem(file: File) -> str:
    """Name of a file without folders and ending."""
    return file.path.rpartition("/")[2].removesuffix(".parquet")


def compute(task: Task, count: Callable[[int], None]) -> Made:
    """Make the file; rows that are there already are copied."""
    wanted = {
        name: intake
        for rows in groups(task.between.logs, task.file, ("connection", INTAKE))
        for name, intake in zip(*(rows[n].to_pylist() for n in ("connection", INTAKE)), strict=True)
    }
    name = f"{stem(task.file)}-{uuid.uuid4().hex[:8]}"
    output = Output(task.between.features, name, task.between.kind.metadata())
    texts = (*KEPT_ATTRIBUTES, *task.between.extra, INTAKE)
    schema = pa.schema(
        [*task.between.kind.schema(), *(pa.field(name, pa.string()) for name in texts)]
    )
    try:
        kept: set[str] = set()
        rows_kept = 0
        for file in task.stale:
            before = frozenset(kept)
            for rows in groups(task.between.features, file):
                serving, names = _serving(rows, task.between.kind.key, wanted, before)
                kept |= names
                rows_kept += serving.num_rows
                if serving.num_rows:
                    output.add(task.partition, aligned(serving, schema))
        lacking = {name for name in wanted if name not in kept}
        computed = _compute(task, lacking, texts, output)
        made = output.close()
    except BaseException:
        output.abandon()
        raise
    count(task.file.size)
    return Made(made[0], computed, len(lacking), rows_kept)


def _serving(
    rows: Any, key: str, wanted: Mapping[str, str], before: frozenset[str]
) -> tuple[Any, set[str]]:
    """Rows of connections that are wanted as they were read then, and that no file before gave.

    A run that was killed before it had tidied up leaves two files with the same connection.
    """
    names = [name for name in wanted if name not in before]
    place = pc.index_in(rows[key], value_set=pa.array(names, pa.string()))
    intakes = pc.take(pa.array([wanted[name] for name in names], pa.string()), place)
    serving = rows.filter(pc.equal(intakes, rows[INTAKE]))
    return serving, set(pc.unique(serving[key]).to_pylist())


def _compute(task: Task, lacking: set[str], attributes: Sequence[str], output: Output) -> Computed:
    def connections() -> Connections:
        for row, series in (
            select.connections(task.between.logs, task.file, task.between.extra) if lacking else ()
        ):
            if row["connection"] in lacking:
                yield row, series

    def add(rows: Any) -> None:
        output.add(task.partition, rows)

    return task.between.kind.compute(connections(), attributes, add)
