"""A part of a store becomes an ingested directory, for whatever reads one (``data.schema``)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data import parquet
from data.errors import UserError
from data.fleet import select
from data.fleet.files import groups
from data.fleet.layout import COUNTS, DAY, INTAKE, KIND, QUARANTINE_KIND, SOURCE_KIND
from data.fleet.runs import connections_of
from data.fleet.table import Table
from data.fleet.where import Where
from data.place import building
from data.schema import CONNECTIONS, QUARANTINE
from data.store import RECORD, VARIABLE_NAMES, PartWriter, own_files

if TYPE_CHECKING:
    from collections.abc import Collection

PART = "part-00000"
LINES = ("lines_read", "event_lines", "skipped_lines", "quarantined_lines")


def write_directory(store: str, where: Where, out: Path) -> dict[str, Any]:
    """Write the connections for which a condition holds, with their events.

    Parameters
    ----------
    store : str
        Address.
    where : Where
    out : Path
        The directory to make; an ingested one is replaced, if it holds nothing else.

    Returns
    -------
    dict
        The counts of ``ingest.json``: of connections, subflows and events those selected; of
        lines those of all logs that they are from.

    Raises
    ------
    UserError
        When no connection fits.
    """
    table = select.open_logs(store)
    with building(out, own_files, "cczoo store export") as work:
        (work / "events").mkdir()
        rows = _write_events(table, where, work)
        if not rows:
            raise UserError(f"{store}: no connection fits --where {where.text!r}")
        extra = [n for n in (DAY, *select.attributes(table)) if n not in CONNECTIONS.names]
        parquet.write_connections(work / "connections.parquet", rows, extra)
        intakes = {row[INTAKE] for row in rows}
        _write_quarantine(table, intakes, work / "quarantine.parquet")
        report = _counts(table, intakes)
        report["connections"] = len(rows)
        report["subflows"] = sum(len(row["subflows"]) for row in rows)
        report["events"] = sum(one["events"] for row in rows for one in row["subflows"])
        files = [path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()]
        record = {**report, "files": sorted([RECORD, *files])}
        (work / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return report


def _write_events(table: Table, where: Where, work: Path) -> list[dict[str, Any]]:
    """Rows of connections, without their events, which are written."""
    writer = PartWriter(work / "events", PART)
    names = select.attributes(table)
    where.check(select.known_columns(table))
    rows: list[dict[str, Any]] = []
    for file, group in select.fitting(table, where):
        values = {name: value for name, value in file.values.items() if name != KIND}
        for row, series in connections_of(group, names):
            writer.begin(row["connection"])
            for subflow, variables in sorted(series.items()):
                for variable in sorted(variables, key=VARIABLE_NAMES.index):
                    writer.add(subflow, VARIABLE_NAMES.index(variable), *variables[variable])
            rows.append(row | values)
    writer.close()
    return rows


def _write_quarantine(table: Table, intakes: Collection[str], path: Path) -> None:
    schema = pa.schema(QUARANTINE)
    wanted = pa.array(sorted(intakes), pa.string())
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for file in table.files(**{KIND: QUARANTINE_KIND}):
            for group in groups(table.address, file):
                kept = group.filter(pc.is_in(group[INTAKE], value_set=wanted))
                if kept.num_rows:
                    writer.write_table(kept.select(schema.names).cast(schema))


def _counts(table: Table, intakes: Collection[str]) -> dict[str, Any]:
    counts: Counter[str] = Counter(dict.fromkeys((*COUNTS, "sources"), 0))
    formats: Counter[str] = Counter()
    for file in table.files(**{KIND: SOURCE_KIND}):
        for group in groups(table.address, file, (INTAKE, "format", "counts")):
            for row in group.to_pylist():
                if row[INTAKE] in intakes:
                    counts.update(row["counts"])
                    counts["sources"] += 1
                    formats[row["format"]] += 1
    return {**counts, "formats": dict(sorted(formats.items()))}
