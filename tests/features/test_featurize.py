"""``cczoo features sbd`` from an ingested directory to the table that others read."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from data.errors import UserError
from data.files import write_file
from features.sbd import FAMILIES, features_of
from pipelines import cli, feature_rows

NAMES = [f.name for family in FAMILIES for f in features_of(family)]


def _run(events_dir, out, *more):
    return cli.main(["features", "sbd", "--events", str(events_dir), "--out", str(out), *more])


def test_one_row_per_window_and_reasons_for_the_rest(events_dir, tmp_path, capsys):
    out = tmp_path / "new" / "sbd.parquet"
    assert _run(events_dir, out, "--json", "--jobs", "1") == 0
    report = json.loads(capsys.readouterr().out)
    table = pl.read_parquet(out)
    assert table.columns[:9] == [*feature_rows.FIXED]
    assert table.columns[9 : 9 + len(NAMES)] == NAMES
    assert table.columns[9 + len(NAMES) :] == ["dataset", "kernel", "cc", "site"]
    assert set(zip(table["subflow_a"], table["subflow_b"], strict=True)) == {(1, 2)}
    assert report["windows"] == table.height > 20
    assert report["connections"] == 21
    without = report["connections_without_window"]
    assert without == {
        "count": 2,
        "reasons": {"no events": 1, "too short for one window": 1},
    }
    assert table["connection"].n_unique() == 19
    assert np.isfinite(table.select(NAMES).to_numpy()).all()
    assert set(table["rtt_kind"]) == {"raw"}
    assert table.filter(pl.col("connection") == "c5")["label"].null_count() > 0
    assert set(table["site"]) == {"site0", "site1"}
    assert table.equals(table.sort("source", "connection", "window"))
    assert not list(tmp_path.glob("**/*.part"))


def test_processes_do_not_change_the_table(events_dir, tmp_path):
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    assert _run(events_dir, one, "--jobs", "1") == 0
    assert _run(events_dir, two, "--jobs", "2") == 0
    assert one.read_bytes() == two.read_bytes()


def test_settings_come_from_the_params_file(events_dir, tmp_path, capsys):
    settings = tmp_path / "params.yaml"
    settings.write_text("features: {sbd: {window_factor: 25}}")
    out = tmp_path / "x.parquet"
    assert _run(events_dir, out, "--params", str(settings), "--jobs", "1") == 0
    table = pl.read_parquet(out)
    assert ((table["end_us"] - table["start_us"]) == 25 * 50_000).all()
    settings.write_text("features: {sbd: {window_facto: 25}}")
    assert _run(events_dir, out, "--params", str(settings)) == 2
    assert "did you mean 'window_factor'" in capsys.readouterr().err


def test_mistakes_are_told_in_one_line(tmp_path, capsys):
    assert _run(tmp_path / "nowhere", tmp_path / "x.parquet") == 2
    assert "cczoo ingest" in capsys.readouterr().err
    assert cli.main(["features", "sdb", "--events", "x", "--out", "y"]) == 2
    assert "did you mean 'sbd'" in capsys.readouterr().err


def test_a_table_among_the_events_is_refused(events_dir, tmp_path, capsys):
    before = (events_dir / "connections.parquet").read_bytes()
    assert _run(events_dir, events_dir / "connections.parquet") == 2
    assert f"lies inside {events_dir}, where the events are" in capsys.readouterr().err
    assert (events_dir / "connections.parquet").read_bytes() == before


def test_a_full_disk_is_told_though_polars_gives_no_number(tmp_path, monkeypatch):
    def fail(part):
        part.write_bytes(b"half")
        raise pl.exceptions.ComputeError("File out of specification: transport error")

    for free, said in ((0, "no space left on device"), (9, "input/output error")):
        monkeypatch.setattr("os.statvfs", lambda _, n=free: SimpleNamespace(f_bavail=n))
        with pytest.raises(UserError, match=said):
            write_file(tmp_path / "x.parquet", fail)
        assert not list(tmp_path.iterdir())
