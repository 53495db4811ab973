"""The logs of a store and their quarantine, as rows."""

from __future__ import annotations

from typing import Any

from data.fleet import ledger
from data.fleet.files import groups
from data.fleet.layout import INTAKE, KIND, QUARANTINE_KIND, SOURCE
from data.fleet.select import open_logs, with_partition
from data.fleet.where import Where


def logs(store: str, where: Where) -> list[dict[str, Any]]:
    """Rows of the logs for which a condition on day, labels of partitions or name holds."""
    table = open_logs(store)
    partition = [name for name in table.partition if name != KIND]
    where.check(["source", "format", *partition])
    found: list[dict[str, Any]] = []
    for frame in ledger.rows(table, SOURCE.names):
        kept = frame.filter(where.mask(frame)).select(*partition, *SOURCE.names)
        found += kept.iter_rows(named=True)
    return sorted(found, key=lambda row: (*(str(row[name]) for name in partition), row["source"]))


def quarantine(store: str, where: Where) -> list[dict[str, Any]]:
    """Rows of the quarantine for which a condition holds."""
    table = open_logs(store)
    where.check(["source", *(name for name in table.partition if name != KIND)])
    found: list[dict[str, Any]] = []
    for file in where.files(table.files(**{KIND: QUARANTINE_KIND})):
        for group in groups(table.address, file):
            frame = with_partition(group, file, ())
            found += frame.filter(where.mask(frame)).drop(INTAKE).iter_rows(named=True)
    return sorted(found, key=lambda row: (row["source"], row["line"]))
