"""Features follow a store: what is new is computed, what is there is kept, selections are read."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from data.fleet.keep import compact, remove
from data.fleet.selection import selection_of
from features.params import SbdParams
from pipelines import feature_rows
from pipelines.cli import main
from pipelines.fleet import follow as following
from pipelines.fleet.selected import write
from pipelines.fleet.windows import Windows
from tests.fleet.small import command, take

ROOT = Path(__file__).parents[2]
RAW = ROOT / "data" / "raw" / "smartsbd-paper"
KEY = ["source", "connection", "window", "subflow_a", "subflow_b"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four real logs of two days, with labels."""
    folder = tmp_path_factory.mktemp("logs")
    lines = ["source,label,isp"]
    for number, source in enumerate(sorted((RAW / "frankfurt").glob("*-nsb-*"))[:4]):
        day = folder / f"2026-11-0{1 + number // 2}"
        day.mkdir(exist_ok=True)
        name = f"frankfurt-nsb-000{number}.klog.zst"
        (day / name).write_bytes(source.read_bytes())
        lines.append(f"{name},NSB,{'xy'[number % 2]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def follow(store: Path, **settings: int) -> dict:
    def spread(work, items, show):
        return [work(item, lambda _: None) for item in items]

    found = following.follow(str(store), Windows("sbd", SbdParams(**settings)), spread)
    return {
        "windows": found.computed.rows,
        "connections": found.connections,
        "windows_kept": found.kept,
    }


def test_features_of_a_store_are_those_of_a_directory(logs, tmp_path, capsys, monkeypatch) -> None:
    store = tmp_path / "store"
    take([logs], store, root=str(logs), partition_by=["isp"])
    assert follow(store)["connections"] == 4
    write(str(store), "sbd", None, None, tmp_path / "selected.parquet")
    from data.ingest import Settings, ingest

    ingest([logs], tmp_path / "out", settings=Settings(jobs=1))
    table, _ = feature_rows.featurize(tmp_path / "out", SbdParams(), 1)
    found = pl.read_parquet(tmp_path / "selected.parquet").sort(KEY)
    assert found.select(table.columns).equals(table.sort(KEY))
    assert set(found.columns) - set(table.columns) == {"day"}
    recorded = pl.read_parquet_metadata(tmp_path / "selected.parquet")
    assert "cczoo.settings" in recorded
    assert "cczoo.smartsbd" in recorded

    # Commands read the store in place of a table, by day and label.
    where = "day = 2026-11-02 and isp = 'y'"
    told = command(
        capsys, "evaluate", "sbd", "--model", "smartsbd-dt", "--store", store, "--where", where
    )
    assert told["connections"] == 1
    assert [*told["by"]["isp"]] == ["y"]
    seen: list[str] = []
    from data.fleet import files

    real = files.groups
    monkeypatch.setattr(
        "pipelines.fleet.selected.groups",
        lambda place, file, *rest: seen.append(file.path) or real(place, file, *rest),
    )
    write(str(store), "sbd", where, None, tmp_path / "one.parquet")
    assert len(seen) == 1
    assert "day=2026-11-02/isp=y" in seen[0]
    selected = selection_of(tmp_path / "one.parquet")
    assert selected is not None
    assert selected.where == where
    assert selected.version == 1
    # Events are taken from it too: by --events, or for rules that judge by them.
    options = ["--store", store, "--where", where]
    told = command(capsys, "evaluate", "sbd", "--model", "rule:dwc", *options)
    assert told["connections"] == 1
    predict = ("predict", "sbd", "--model", "smartsbd-dt", "--jobs", 1, "--events")
    told = command(capsys, *predict, store, "--where", where)
    out = tmp_path / "exported"
    assert command(capsys, "store", "export", store, "--where", where, "--out", out)["sources"] == 1
    assert command(capsys, *predict, out)["connections"] == told["connections"]
    assert main([*map(str, predict), str(out), "--where", "x"]) == 2
    assert "goes with a store" in capsys.readouterr().err
    assert main(["evaluate", "sbd", "--model", "smartsbd-dt"]) == 2
    never = ["--store", str(store), "--where", "day = 1999-01-01"]
    assert main(["evaluate", "sbd", "--model", "smartsbd-dt", *never]) == 2
    assert "no row of its features fits" in capsys.readouterr().err


def test_only_what_is_new_or_of_other_settings_is_computed(logs, tmp_path) -> None:
    store = tmp_path / "store"
    take([logs / "2026-11-01"], store, labels=logs / "labels.csv")
    assert follow(store)["connections"] == 2
    assert follow(store)["connections"] == 0
    for path in sorted((logs / "2026-11-02").iterdir()):
        take([path], store, labels=logs / "labels.csv")
        assert follow(store)["connections"] == 1
    # A log that comes into a day's files, or files that are put together, cost nothing again.
    compact(str(store), 0)
    again = follow(store)
    assert again["windows"] == 0
    assert again["windows_kept"] > 0
    other = follow(store, window_factor=40)
    assert other["connections"] == 4
    rows = pl.scan_delta(str(store / "sbd")).collect()
    assert rows["settings"].n_unique() == 2
    assert not rows.select("settings", *KEY).is_duplicated().any()
    # A removed log's features go, and its neighbours' are kept, with either settings.
    remove(str(store), ["*-0000.klog.zst"], ("sbd",))
    for settings in ({}, {"window_factor": 40}):
        again = follow(store, **settings)
        assert again["connections"] == 0
        assert again["windows_kept"] > 0
    rows = pl.scan_delta(str(store / "sbd")).collect()
    assert rows["settings"].n_unique() == 2
    assert not rows["source"].str.contains("-0000").any()


def test_a_run_that_was_killed_goes_on(logs, tmp_path, monkeypatch) -> None:
    store = tmp_path / "store"
    for number in range(4):
        take([logs / f"2026-11-0{1 + number // 2}" / f"frankfurt-nsb-000{number}.klog.zst"], store)
    monkeypatch.setattr(following, "PORTION", 1)
    real, left = following.compute, [2]

    def killed(task, count):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(task, count)

    monkeypatch.setattr(following, "compute", killed)
    with pytest.raises(KeyboardInterrupt):
        follow(store)
    monkeypatch.setattr(following, "compute", real)
    assert follow(store)["connections"] == 2
