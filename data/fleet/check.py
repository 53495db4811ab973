"""A store is checked: each file is there and readable, and every line of every log is counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow.compute as pc

from data.errors import UserError
from data.fleet import ledger
from data.fleet.address import below, filesystem
from data.fleet.files import groups
from data.fleet.layout import CONNECTION_KIND, INTAKE, KIND, QUARANTINE_KIND, SOURCE_KIND
from data.fleet.select import open_logs
from data.fleet.table import File, Table

SHOWN = 20
"""Problems of a kind that are listed."""
Watch = Callable[[Iterable[Any]], Iterable[Any]]


def check(store: str, watch: Watch = iter) -> dict[str, Any]:
    """Read a store through and compare it with its own account.

    Parameters
    ----------
    store : str
        Address.
    watch : callable, optional
        Shows how far a loop is.

    Returns
    -------
    dict
        ``problems``: texts, none if all is well; ``files``, ``logs``, and the summed counts.
    """
    table = open_logs(store)
    files = table.files()
    forgotten: set[str] | None = None
    found: dict[str, Counter[str]] = defaultdict(Counter)
    problems: list[str] = []
    system, root = filesystem(table.address)
    for file in watch(files):
        path = below(root, file.path)
        if not system.exists(path):
            problems.append(f"{file.path}: is missing")
        elif system.size(path) != file.size:
            problems.append(f"{file.path}: has {system.size(path)} bytes, not {file.size}")
        else:
            try:
                forgotten = _forgotten(table) if forgotten is None else forgotten
                _count(table, file, found, forgotten)
            except UserError as error:
                problems.append(str(error))
    totals: Counter[str] = Counter()
    logs = 0
    names: Counter[str] = Counter()
    if not problems:
        for frame in ledger.rows(table, ("source", INTAKE, "counts")):
            for row in frame.iter_rows(named=True):
                logs += 1
                names[row["source"]] += 1
                totals.update(row["counts"])
                problems += _lines(row)
                found[row[INTAKE]].subtract(_expected(row["counts"]))
        problems += [f"{name}: is there {n} times" for name, n in names.items() if n > 1]
        for intake, left in found.items():
            for what, number in left.items():
                if number:
                    problems.append(f"intake {intake}: {number:+d} {what} beside its account")
        problems += ledger.wrong(table)
    return {
        "problems": problems[:SHOWN],
        "more_problems": max(0, len(problems) - SHOWN),
        "files": len(files),
        "logs": logs,
        "counts": dict(totals),
        "version": table.version,
    }


def _lines(row: dict[str, Any]) -> list[str]:
    counts = row["counts"]
    kinds = ("event_lines", "skipped_lines", "quarantined_lines")
    if counts["lines_read"] == sum(counts[name] for name in kinds):
        return []
    return [f"{row['source']}: {counts['lines_read']} lines aren't all accounted for"]


def _expected(counts: dict[str, int]) -> dict[str, int]:
    """What the other kinds must hold of a log."""
    lost = counts["forgotten_connections"]
    names = {"quarantined_lines": counts["quarantined_lines"]}
    names["connections"] = counts["connections"] - lost
    # Events of forgotten connections aren't kept apart: those logs are counted by connections.
    return names | ({} if lost else {"events": counts["events"], "runs": counts["events"]})


def _count(table: Table, file: File, found: dict[str, Counter[str]], forgotten: set[str]) -> None:
    rows_seen = 0
    kind = file.values[KIND]
    for rows in groups(table.address, file):
        rows_seen += rows.num_rows
        intakes = rows[INTAKE].to_pylist()
        if kind == CONNECTION_KIND:
            runs = rows["runs"].combine_chunks()
            subflows = rows["subflows"].to_pylist()
            sizes = [sum(one["events"] for one in own) for own in subflows]
            flat = pc.list_value_length(runs.flatten().field("value")).to_numpy()
            at = 0
            lengths = pc.list_value_length(runs).to_numpy()
            for intake, size, length in zip(intakes, sizes, lengths, strict=True):
                found[intake]["connections"] += 1
                if intake not in forgotten:
                    found[intake]["events"] += size
                    found[intake]["runs"] += int(flat[at : at + length].sum())
                at += length
        elif kind == QUARANTINE_KIND:
            for intake, count in zip(intakes, rows["count"].to_pylist(), strict=True):
                found[intake]["quarantined_lines"] += count
    if rows_seen != file.rows:
        raise UserError(f"{file.path}: has {rows_seen} rows, not {file.rows}")
    assert kind in (SOURCE_KIND, CONNECTION_KIND, QUARANTINE_KIND)


def _forgotten(table: Table) -> set[str]:
    """Intakes of which connections were forgotten."""
    return {
        row[INTAKE]
        for frame in ledger.rows(table, (INTAKE, "counts"))
        for row in frame.iter_rows(named=True)
        if row["counts"]["forgotten_connections"]
    }
