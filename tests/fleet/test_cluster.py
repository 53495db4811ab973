"""With RAY_ADDRESS the work on a store is done by Ray: the same store, whatever dies."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import polars as pl
import pytest

from data.errors import UserError
from data.fleet.check import check
from data.fleet.ingest import ingest_into
from data.ingest import Settings
from models import parallel
from pipelines.fleet.spread import Step, spread_over
from tests.fleet.small import take, write_log

pytestmark = pytest.mark.xdist_group("ray")


def contents(store: Path) -> pl.DataFrame:
    table = pl.scan_delta(str(store / "logs")).collect()
    return table.sort("kind", "source", "connection", "line")


def test_ray_makes_the_same_store_whatever_dies(tmp_path: Path, monkeypatch) -> None:
    for number in range(3):
        write_log(tmp_path / "logs" / f"2026-11-0{1 + number // 2}" / f"{number}.csv", number)
    take([tmp_path / "logs"], tmp_path / "here")
    monkeypatch.setenv("RAY_ADDRESS", "local")
    # Each log is a task of its own; the process of the second is killed with its files half done.
    monkeypatch.setattr("data.fleet.ingest._portions", lambda units: [(unit,) for unit in units])
    spread, killed = spread_over(None), tmp_path / "killed"

    def dies_once(work, items, show):
        def mortal(item, count):
            result = work(item, count)
            units = getattr(item, "units", None)
            if units and units[0].logs[0].name.endswith("1.csv") and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return spread(mortal, items, show)

    try:
        report = ingest_into(
            [str(tmp_path / "logs")], str(tmp_path / "there"), dies_once, Settings()
        )
    finally:
        parallel.stop()
    assert killed.exists()
    assert report["logs"]["new"] == 3
    assert contents(tmp_path / "there").equals(contents(tmp_path / "here"))
    assert not check(str(tmp_path / "there"))["problems"]


def test_a_users_mistake_comes_back_as_one() -> None:
    def refused(item, count):
        count(7)
        raise UserError(f"{item}: make it readable")

    row = {"number": 3, "item": pickle.dumps("a.csv")}
    told = {"number": 3, "result": b"", "mistake": "a.csv: make it readable", "bytes": 7}
    assert Step(refused)(row) == told
