"""Delta and Iceberg do the same to the same rows: `benchmarks/formats.py` runs this in its own
environment and says what the figures are. Prints JSON.

    python two_formats.py FOLDER COMMITS ROWS
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa


def rows(number: int, count: int) -> pa.Table:
    """A night's rows."""
    rng = np.random.default_rng(number)
    names = [f"{number}-{i}" for i in range(count)]
    return pa.table({"source": names, "value": rng.integers(0, 10**9, count)})


class Delta:
    """A table in a folder; whoever makes the next file of its log has committed."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder / "delta")

    def create(self) -> None:
        from deltalake import DeltaTable

        DeltaTable.create(self.place, schema=rows(0, 1).schema)

    def add(self, table: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.place, table, mode="append")

    def count(self) -> int:
        return int(pl.scan_delta(self.place).select(pl.len()).collect().item())

    def with_polars(self) -> int:
        return int(pl.scan_delta(self.place).select(pl.col("value").sum()).collect().item())

    def with_duckdb(self) -> int:
        return _summed(duckdb.sql(f"select sum(value) from delta_scan('{self.place}')"))

    def with_arrow(self) -> int:
        from deltalake import DeltaTable

        there = duckdb.connect()
        there.register("there", DeltaTable(self.place).to_pyarrow_dataset())
        return _summed(there.sql("select sum(value) from there"))


class Iceberg:
    """The same with a catalogue in an SQLite file, which says which metadata is the newest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _catalogue(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        uri = f"sqlite:///{self.folder}/catalogue.db"
        return SqlCatalog("here", uri=uri, warehouse=f"file://{self.folder}/iceberg")

    def create(self) -> None:
        catalogue = self._catalogue()
        catalogue.create_namespace("cc")
        catalogue.create_table("cc.logs", schema=rows(0, 1).schema)

    def add(self, table: pa.Table) -> None:
        self._catalogue().load_table("cc.logs").append(table)

    def count(self) -> int:
        return int(self._catalogue().load_table("cc.logs").scan().count())

    def with_polars(self) -> int:
        table = self._catalogue().load_table("cc.logs")
        return int(pl.scan_iceberg(table).select(pl.col("value").sum()).collect().item())

    def with_duckdb(self) -> int:
        place = self._catalogue().load_table("cc.logs").metadata_location
        return _summed(duckdb.sql(f"select sum(value) from iceberg_scan('{place}')"))

    def with_arrow(self) -> int:
        there = duckdb.connect()
        found = self._catalogue().load_table("cc.logs").scan().to_arrow_batch_reader()
        there.register("there", found)
        return _summed(there.sql("select sum(value) from there"))


def _summed(found: Any) -> int:
    return int(found.fetchall()[0][0])


KINDS: dict[str, Callable[[Path], Any]] = {"delta": Delta, "iceberg": Iceberg}


def writer(kind: str, folder: Path, first: int, commits: int, told: Any) -> None:
    """Add small tables one after another; tells how many of them were refused."""
    table, refused = KINDS[kind](folder), 0
    for number in range(first, first + commits):
        try:
            table.add(rows(number, 10))
        except Exception:  # of whatever kind the library's own refusal is
            refused += 1
    told.put(refused)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and the result or what went wrong."""
    begun = time.process_time()
    try:
        found = work()
    except Exception as error:  # the figure is that it can't be done
        found = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return round(time.process_time() - begun, 3), found


def measure(kind: str, folder: Path, commits: int, count: int) -> dict[str, Any]:
    """Commits one after another and side by side, and what two readers see."""
    table = KINDS[kind](folder)
    table.create()
    spent = [timed(lambda n=n: table.add(rows(n, count)))[0] for n in range(commits)]
    expected = sum(int(np.sum(rows(n, count)["value"].to_numpy())) for n in range(commits))
    readers = {}
    ways = {
        "polars": table.with_polars,
        "duckdb's extension": table.with_duckdb,
        "duckdb over arrow": table.with_arrow,
    }
    for name, reader in ways.items():
        cpu_s, found = timed(reader)
        readers[name] = {"cpu_s": cpu_s, "same": found == expected}
        readers[name] |= {"error": found} if isinstance(found, str) else {}
    before = table.count()
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    both = [
        context.Process(target=writer, args=(kind, folder, 1000 * i, commits, told)) for i in (1, 2)
    ]
    for one in both:
        one.start()
    refused = sum(told.get() for _ in both)
    for one in both:
        one.join()
    return {
        "second_commit_cpu_s": spent[1],
        "last_commit_cpu_s": spent[-1],
        "readers": readers,
        "side_by_side": {
            "commits": 2 * commits,
            "refused": refused,
            "lost": 10 * (2 * commits - refused) - (table.count() - before),
        },
        "files": sum(1 for path in folder.rglob("*") if path.is_file()),
    }


def main() -> None:
    folder, commits, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    report = {}
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        report[kind] = measure(kind, folder / kind, commits, count)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
