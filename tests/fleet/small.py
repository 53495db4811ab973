"""Small logs, and the commands on stores in this process."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import polars as pl

from data import pool
from data.fleet import table
from data.fleet.ingest import ingest_into
from data.ingest import Settings
from pipelines.cli import main

GOLDEN = (Path(__file__).parents[1] / "golden" / "probe-csv.csv").read_text()


def write_log(path: Path, number: int, ports: tuple[int, int] = (40001, 40002)) -> Path:
    """A log of three connections whose content is its own; the second has an unreadable line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = GOLDEN.replace("fd5b4500", f"{number:08x}")
    text = text.replace("40001", str(ports[0])).replace("40002", str(ports[1]))
    path.write_text(text)
    return path


def take(paths, store, **options):
    """`ingest_into` in this process."""

    def spread(work, items, show):
        return pool.spread(work, items, 1, show)

    if "labels" in options:
        options["labels"] = Path(options["labels"])
    places = [str(path) for path in paths]
    return ingest_into(places, str(store), spread, Settings(), **options)


def take_each(paths, store) -> None:
    """Take one log after another, each in a commit of its own."""
    for path in paths:
        take([path], store)


def take_and_die(logs: Path, store: Path) -> None:
    """Take logs, and be killed before the commit."""

    def dead(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    table.Table.commit = dead  # type: ignore[method-assign]
    take([logs], store)


def rows(store: Path, kind: str = "connection", table: str = "logs") -> pl.DataFrame:
    """Rows of a kind as any reader of Delta sees them."""
    return pl.scan_delta(str(store / table)).filter(pl.col("kind") == kind).collect()


def command(capsys, *words) -> dict:
    """The JSON that a command prints."""
    code = main([*map(str, words), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def hashes(text: str) -> list[str]:
    """Pseudonyms in a text."""
    return re.findall(r"[0-9a-f]{20}", text)
