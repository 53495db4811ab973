"""Decisions follow a store, trainings read a part of them, and what is forgotten is in neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from data.decisions import files
from data.errors import UserError
from data.fleet.forget import forget
from data.fleet.keep import compact
from data.fleet.where import Where
from data.ingest import Settings, ingest
from models.decisions import logs as of_logs
from models.decisions import source
from pipelines.cli import main
from pipelines.fleet import follow as following
from pipelines.fleet.decided import chosen
from pipelines.fleet.decisions import Decisions
from pipelines.fleet.tables import KEYS
from tests.fleet.small import command, take

pytestmark = pytest.mark.xdist_group("netsim")
ROOT = Path(__file__).parents[2]
CAMPAIGN = ROOT / "data" / "raw" / "smartsbd-random"
WORDS = ["features", "decisions", "tcco", "--jobs", 1, "--store"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four real logs of two days, of three controls and two groups."""
    folder = tmp_path_factory.mktemp("logs")
    head, *rows = (CAMPAIGN / "labels.csv").read_text().splitlines()
    lines = [f"{head},isp"]
    for number, path in enumerate(sorted((CAMPAIGN / "random").glob("*"))[:4]):
        day = folder / f"2026-11-0{1 + number // 2}"
        day.mkdir(exist_ok=True)
        (day / path.name).write_bytes(path.read_bytes())
        [row] = [row for row in rows if path.name in row]
        lines.append(f"{row.replace('random/', '', 1)},{'xy'[number % 2]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def store(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two days, with decisions of the first and then of the second."""
    place = tmp_path_factory.mktemp("fleet") / "store"
    take([logs], place, root=str(logs), partition_by=["isp"])
    found = follow(place, Where("day = 2026-11-01"))
    assert found.connections == 2
    assert follow(place).connections == 2
    return place


def follow(place: Path, where: Where | None = None, **settings: Any) -> following.Followed:
    def spread(work, items, show):
        return [work(item, lambda _: None) for item in items]

    kind = Decisions("tcco", source("tcco").settings.parse(settings, "test"))
    return following.follow(str(place), kind, spread, where)


def runs(place: Path) -> dict[str, files.Run]:
    return {run.name: run for run in files.runs(place)}


def test_decisions_of_a_store_are_those_of_a_directory(logs: Path, store: Path, tmp_path) -> None:
    ingest([logs], tmp_path / "out", settings=Settings(jobs=1))
    settings = source("tcco").settings()
    of_logs.write(tmp_path / "out", "tcco", settings, tmp_path / "all.parquet", lambda it, *_: it)
    expected = runs(tmp_path / "all.parquet")
    with chosen(str(store), "tcco", None) as (folder, selection):
        assert selection is not None
        assert selection.where == ""
        found = runs(folder)
        assert found.keys() == expected.keys()
        for name, run in found.items():
            other = expected[name]
            assert (run.behaviour, run.truncated) == (other.behaviour, other.truncated)
            for column in ("observation", "action", "change", "reward"):
                assert np.array_equal(getattr(run, column), getattr(other, column)), column
    # Each of the store's own files is one that every reader of decisions takes.
    assert runs(store / "decisions-tcco").keys() == expected.keys()
    rows = pl.scan_delta(str(store / "decisions-tcco")).collect()
    assert set(rows["settings"]) == {following.settings_hash(Decisions("tcco", settings))}
    assert rows["rate_lte_mbps"].dtype == pl.String


def test_a_part_is_selected_by_days_labels_and_runs(store: Path, capsys) -> None:
    where = "day = 2026-11-02 and isp = 'y' and source like '%0018%' and behaviour = 'cubic'"
    with chosen(f"{store}/decisions-tcco", "tcco", where) as (folder, selection):
        [run] = files.runs(folder)
        assert selection is not None
        assert selection.where == where
        assert (run.behaviour, len(files.files(folder))) == ("cubic", 1)
    for condition, message in (
        ("reward > 0", "unknown column"),
        ("cc = 'vegas'", "no decision fits"),
    ):
        with pytest.raises(UserError, match=message), chosen(str(store), "tcco", condition):
            pass
    with pytest.raises(UserError, match="goes with a store"), chosen("x", "tcco", "day = 1"):
        pass
    with pytest.raises(UserError, match="features decisions macc"), chosen(str(store), "macc", ""):
        pass


def test_only_what_is_new_or_of_other_settings_is_computed(logs: Path, tmp_path, capsys) -> None:
    store = tmp_path / "store"
    take([logs / "2026-11-01"], store, labels=logs / "labels.csv")
    first = command(capsys, *WORDS, store)
    assert first["connections"] == 2
    assert first["decisions"] == sum(first["decisions_of"].values()) > 0
    assert command(capsys, *WORDS, store)["connections"] == 0
    # Labels may get a column in the meantime.
    head, *rows = (logs / "labels.csv").read_text().splitlines()
    later = tmp_path / "later.csv"
    later.write_text("\n".join([f"{head},lane", *(f"{row},fast" for row in rows)]) + "\n")
    for path, labels in zip(
        sorted((logs / "2026-11-02").iterdir()), (logs / "labels.csv", later), strict=True
    ):
        take([path], store, labels=labels)
        assert command(capsys, *WORDS, store)["connections"] == 1
    before = pl.scan_delta(str(store / "decisions-tcco")).collect()
    compact(str(store), 0)
    again = command(capsys, *WORDS, store)
    assert (again["connections"], again["decisions"]) == (0, 0)
    assert again["decisions_kept"] > 0
    kept = pl.scan_delta(str(store / "decisions-tcco")).collect()
    assert kept.unique("run")["lane"].to_list().count("fast") == 1
    assert sorted(before["run"].unique()) == sorted(runs(store / "decisions-tcco"))
    other = command(capsys, *WORDS, store, "--set", "params.observation.interval_us=40000")
    assert other["connections"] == 4
    assert other["settings"] != again["settings"]
    # The default settings are meant, or those that a condition names.
    with chosen(str(store), "tcco", None) as (folder, _):
        assert files.about(folder).interval_us == 20_000
    with chosen(str(store), "tcco", f"settings = '{other['settings']}'") as (folder, _):
        assert files.about(folder).interval_us == 40_000
    # Connections without decisions are looked at once, and the reasons are told.
    refused = command(capsys, "features", "decisions", "macc", "--jobs", 1, "--store", store)
    assert refused["connections_refused"] == len(refused["refused"]) == 4
    assert "one path" in next(iter(refused["reasons"]))


def test_what_is_forgotten_goes_from_decisions_too(logs: Path, tmp_path, capsys) -> None:
    store = tmp_path / "store"
    take([logs], store, partition_by=["isp"])
    follow(store)
    before = pl.scan_delta(str(store / "decisions-tcco")).collect()
    gone = forget(str(store), Where("isp = 'x' and day = 2026-11-01"), KEYS)
    assert gone.features["decisions-tcco"] > 0
    after = pl.scan_delta(str(store / "decisions-tcco")).collect()
    assert len(after) == len(before) - gone.features["decisions-tcco"]
    text = b"".join(p.read_bytes() for p in store.rglob("*.parquet"))
    assert gone.rows["connection"][0].encode() not in text
    assert follow(store).connections == 0


def test_what_is_forgotten_meanwhile_does_not_come_back(logs, tmp_path, monkeypatch) -> None:
    store, real = tmp_path / "store", following.compute
    take([logs], store, partition_by=["isp"])

    def slow(task, count):
        made = real(task, count)
        if task.file.values["isp"] == "y" and task.file.values["day"] == "2026-11-01":
            forget(str(store), Where("isp = 'y' and day = 2026-11-01"), KEYS)
        return made

    monkeypatch.setattr(following, "compute", slow)
    follow(store)
    place = store / "decisions-tcco"
    assert not set(pl.scan_delta(str(place)).filter(isp="y", day="2026-11-01").collect()["run"])
    assert not list(place.glob("*/day=2026-11-01/isp=y/*.parquet"))
    assert len(runs(place)) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "cc = 'cubic'"], "which 'cc' doesn't tell apart"),
        (["--where", "dya = 2026-11-01"], "did you mean 'day'"),
        (["--out", "x"], "leave --out away"),
        (["--model", "x"], "by --set"),
        (["--set", "params.reech=3"], "reach"),
    ],
)
def test_mistakes_are_told_in_a_line(store, capsys, words, message) -> None:
    assert main([*map(str, WORDS), str(store), *words]) == 2
    [line] = [one for one in capsys.readouterr().err.splitlines() if one.startswith("cczoo")]
    assert message in line
