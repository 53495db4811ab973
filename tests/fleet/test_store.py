"""A store takes each log once, whole or not at all, whoever else writes and whatever is killed."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import polars as pl
import pytest

from data.errors import UserError
from data.fleet import index, ledger
from data.fleet.check import check
from data.fleet.directory import write_directory
from data.fleet.keep import compact, remove
from data.fleet.select import fingerprint, open_logs
from data.fleet.where import Where
from data.ingest import Settings, ingest
from data.store import iter_connections
from tests.fleet.small import rows, take, take_and_die, take_each, write_log

NONE = {"new": 0, "replaced": 0, "unchanged": 0, "elsewhere": 0, "forgotten": 0}
LINES = ("event_lines", "skipped_lines", "quarantined_lines")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(4):
        write_log(tmp_path / "logs" / f"2026-11-0{1 + number // 2}" / f"{number}.csv", number)
    return tmp_path / "logs"


def contents(store: Path) -> pl.DataFrame:
    """Rows of all kinds, whatever files they are in."""
    table = pl.scan_delta(str(store / "logs")).collect()
    return table.sort("kind", "source", "connection", "line")


def events(directory: Path) -> dict[str, dict[tuple[int, str], tuple[list[int], list[int]]]]:
    """All events of an ingested directory."""
    return {
        row["connection"]: {
            (subflow, variable): (times.tolist(), values.tolist())
            for subflow, variables in series.items()
            for variable, (times, values) in variables.items()
        }
        for row, series in iter_connections(directory)
    }


def version(store: Path) -> str:
    return fingerprint(open_logs(str(store)), Where())[0]


def test_a_store_has_what_a_directory_has(logs: Path, tmp_path: Path) -> None:
    report = take([logs], tmp_path / "store", root=str(logs))
    directory = ingest([logs], tmp_path / "out", settings=Settings(jobs=1))
    assert {k: report[k] for k in LINES} == {k: directory[k] for k in LINES}
    assert report["lines_read"] == sum(report[k] for k in LINES) == directory["lines_read"]
    stored = {
        row["connection"]: {
            (run["subflow"], run["variable"]): (run["time_us"], run["value"]) for run in row["runs"]
        }
        for row in rows(tmp_path / "store").iter_rows(named=True)
    }
    expected = events(tmp_path / "out")
    assert stored == expected
    bad = pl.read_parquet(tmp_path / "out" / "quarantine.parquet").sort("source", "line")
    kept = rows(tmp_path / "store", "quarantine").sort("source", "line").select(bad.columns)
    assert kept.equals(bad)
    assert len(bad)
    # A part of the store becomes a directory that has the same, whatever reads it.
    where = Where("day = 2026-11-02")
    told = write_directory(str(tmp_path / "store"), where, tmp_path / "day")
    assert told["lines_read"] == sum(told[k] for k in LINES)
    assert told["sources"] == 2
    part = events(tmp_path / "day")
    assert set(part) == set(rows(tmp_path / "store").filter(day="2026-11-02")["connection"])
    assert part == {name: expected[name] for name in part}
    assert len(pl.read_parquet(tmp_path / "day" / "quarantine.parquet")) == len(bad) // 2
    assert set(rows(tmp_path / "store")["day"]) == {"2026-11-01", "2026-11-02"}


def test_each_log_is_taken_once(logs: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert take([logs / "2026-11-01"], store)["logs"]["new"] == 2
    before = contents(store)
    again = take([logs / "2026-11-01"], store)
    assert again["logs"] == {
        "new": 0,
        "replaced": 0,
        "unchanged": 2,
        "elsewhere": 0,
        "forgotten": 0,
    }
    assert contents(store).equals(before)
    # Neither another name nor another time of change makes another log.
    os.utime(logs / "2026-11-01" / "0.csv")
    (logs / "2026-11-03").mkdir()
    (logs / "2026-11-03" / "copy.csv").write_bytes((logs / "2026-11-01" / "0.csv").read_bytes())
    report = take([logs], store)
    assert report["logs"] == {
        "new": 2,
        "replaced": 0,
        "unchanged": 2,
        "elsewhere": 1,
        "forgotten": 0,
    }
    assert not check(str(store))["problems"]


def test_a_changed_log_replaces_its_own_rows_only(logs: Path, tmp_path: Path) -> None:
    store, changed = tmp_path / "store", logs / "2026-11-01" / "0.csv"
    take([logs], store)
    before = contents(store)
    write_log(changed, 77)
    report = take([logs], store)
    assert report["logs"]["replaced"] == 1
    assert report["sources"] == 1
    after = contents(store)
    other = pl.col("source") != str(changed)
    assert after.filter(other).equals(before.filter(other))
    assert not set(after.filter(~other)["intake"]) & set(before.filter(~other)["intake"])
    assert not check(str(store))["problems"]


def test_other_labels_replace_a_log_and_part_the_store(logs: Path, tmp_path: Path) -> None:
    store, labels = tmp_path / "store", tmp_path / "labels.csv"
    labels.write_text("source,isp,label,city\n0.csv,x,SB,rome\n1.csv,y/z ü,NSB,\n")
    take([logs / "2026-11-01"], store, labels=labels, partition_by=["isp"])
    found = rows(store).unique("source").sort("source")
    assert found["isp"].to_list() == ["x", "y/z ü"]
    assert found["city"].to_list() == ["rome", None]
    labels.write_text("source,isp,label,city,lane\n0.csv,x,NSB,rome,fast\n1.csv,y/z ü,NSB,,\n")
    assert take([logs / "2026-11-01"], store, labels=labels)["logs"]["replaced"] == 2
    assert set(rows(store).filter(isp="x")["label"]) == {"NSB"}
    assert set(rows(store).filter(isp="x")["lane"]) == {"fast"}
    with pytest.raises(UserError, match="is parted by isp"):
        take([logs], store, partition_by=["city"])


def test_a_removed_log_can_be_taken_again(logs: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    take([logs], store)
    whole = version(store)
    assert len(remove(str(store), ["*/2026-11-02/*"])["logs"]) == 2
    assert set(rows(store)["day"]) == {"2026-11-01"}
    assert not check(str(store))["problems"]
    with pytest.raises(UserError, match="no log is named"):
        remove(str(store), ["*/2026-11-02/*"])
    assert take([logs], store)["logs"]["new"] == 2
    assert version(store) == whole


def test_compacting_changes_no_row(logs: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in range(4):
        take([logs / f"2026-11-0{1 + number // 2}" / f"{number}.csv"], store)
    before, whole = contents(store), version(store)
    report = compact(str(store), keep_days=0)
    assert (report["files_before"], report["files"]) == (12, 6)
    assert contents(store).equals(before)
    assert version(store) == whole
    on_disk = [p for p in (store / "logs").rglob("*.parquet") if "_delta_log" not in p.parts]
    assert len(on_disk) == 6
    assert compact(str(store), keep_days=0)["files"] == 6


def test_labels_that_get_a_column_fit_in_a_days_files(logs: Path, tmp_path: Path) -> None:
    store, labels = tmp_path / "store", tmp_path / "labels.csv"
    labels.write_text("source,isp\n0.csv,x\n")
    take([logs / "2026-11-01" / "0.csv"], store, labels=labels)
    labels.write_text("source,isp,lane\n1.csv,x,fast\n")
    take([logs / "2026-11-01" / "1.csv"], store, labels=labels)
    compact(str(store), keep_days=0)
    assert len(open_logs(str(store)).files(kind="connection")) == 1
    found = rows(store).unique("source").sort("source")
    assert (found["isp"].to_list(), found["lane"].to_list()) == (["x", "x"], [None, "fast"])
    remove(str(store), ["*/0.csv"])
    assert not check(str(store))["problems"]


def test_wrong_days_and_partitions_are_refused(logs: Path, tmp_path: Path) -> None:
    store, labels = tmp_path / "store", tmp_path / "labels.csv"
    labels.write_text("source,isp\n0.csv,x\n")
    with pytest.raises(UserError, match="did you mean 'isp'"):
        take([logs], store, labels=labels, partition_by=["ips"])
    with pytest.raises(UserError, match="--day '2026-02-30': is none"):
        take([logs], store, day="2026-02-30")
    write_log(tmp_path / "more" / "2026-02-30.csv", 9)
    take([tmp_path / "more"], store)
    assert "2026-02-30" not in set(rows(store)["day"])


def test_check_finds_what_is_wrong(logs: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    take([logs], store)
    good = check(str(store))
    assert not good["problems"]
    assert good["logs"] == 4
    path = next((store / "logs").rglob("kind=connection/*/*.parquet"))
    kept = path.read_bytes()
    path.write_bytes(kept[:-100] + b"x" * 100)
    assert "damaged" in check(str(store))["problems"][0]
    path.unlink()
    assert "is missing" in check(str(store))["problems"][0]


def test_an_index_of_the_logs_changes_no_answer(logs: Path, tmp_path: Path, monkeypatch) -> None:
    store = tmp_path / "store"
    monkeypatch.setattr(index, "EVERY", 1)
    take([logs / "2026-11-01"], store)
    assert (store / "logs" / index.NAME).is_file()
    table = open_logs(str(store))
    known = index.read(table)[0]
    assert known == {file.path for file in table.files(kind="source")}
    seen: list[str] = []
    real = ledger.groups
    monkeypatch.setattr(ledger, "groups", lambda *of: seen.append(of[1].path) or real(*of))
    ledger._few.cache_clear()
    write_log(logs / "2026-11-01" / "0.csv", 77)
    assert take([logs], store)["logs"] == NONE | {"new": 2, "replaced": 1, "unchanged": 1}
    assert seen
    assert not known & set(seen), "what the index has is read from it"
    compact(str(store), keep_days=0)
    assert take([logs], store)["logs"] == NONE | {"unchanged": 4}
    remove(str(store), ["*/2026-11-01/0.csv"])
    assert take([logs], store)["logs"] == NONE | {"new": 1, "unchanged": 3}
    # What is damaged is done without, and made again.
    (store / "logs" / index.NAME).write_bytes(b"PAR1 and nothing else PAR1")
    assert take([logs], store)["logs"] == NONE | {"unchanged": 4}
    assert not check(str(store))["problems"]


CLEAN = multiprocessing.get_context("forkserver")
"""Processes that share one start of Python, and nothing of this one."""
CLEAN.set_forkserver_preload(["tests.fleet.small"])


def test_a_killed_run_leaves_the_store_as_it_was(logs: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    take([logs / "2026-11-01"], store)
    before = contents(store)
    dying = CLEAN.Process(target=take_and_die, args=(logs, store))
    dying.start()
    dying.join()
    assert dying.exitcode == -9
    written = [p for p in (store / "logs").rglob("*.parquet") if "_delta_log" not in p.parts]
    assert len(written) > 3, "it had written its files"
    assert contents(store).equals(before)
    assert take([logs], store)["logs"] == {
        "new": 2, "replaced": 0, "unchanged": 2, "elsewhere": 0, "forgotten": 0
    }  # fmt: skip
    assert not check(str(store))["problems"]


def test_two_writers_at_once_take_each_log_once(logs: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    paths = [str(path) for path in sorted(logs.rglob("*.csv"))]
    orders = (paths, paths[::-1])
    writers = [CLEAN.Process(target=take_each, args=(order, store)) for order in orders]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0, 0]
    sources = rows(store, "source")
    assert sorted(sources["source"]) == paths
    assert not check(str(store))["problems"]


def test_files_of_one_connection_are_taken_together(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in range(2):
        write_log(tmp_path / "logs" / f"run1-{number}.csv", number)
    from data.fleet.ingest import ingest_into
    from data.pool import spread

    def keyed(*paths: Path) -> dict[str, int]:
        found: dict[str, int] = ingest_into(
            [str(path) for path in paths], str(store), lambda w, i, s: spread(w, i, 1, s),
            Settings(connection_key="(run[0-9]+)"),
        )["logs"]  # fmt: skip
        return found

    assert keyed(tmp_path / "logs")["new"] == 2
    assert len(rows(store).filter(~pl.col("connection").str.contains("receiver"))) == 1
    write_log(tmp_path / "logs" / "run1-1.csv", 9)
    with pytest.raises(UserError, match="give all files of it"):
        keyed(tmp_path / "logs" / "run1-1.csv")
    assert keyed(tmp_path / "logs")["replaced"] == 1
    assert len(rows(store, "source")) == 2
    assert not check(str(store))["problems"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("day >= 2026-11-02", 6),
        ("day = 2026-11-01 and source like '%/0.csv'", 3),
        ("(day = 2026-11-01 or day = 2026-11-02) and cc is null", 12),
        ("day between 2026-11-02 and 2026-11-03", 6),
    ],
)
def test_conditions(logs: Path, tmp_path: Path, text: str, count: int) -> None:
    take([logs], tmp_path / "store")
    table = open_logs(str(tmp_path / "store"))
    assert fingerprint(table, Where(text))[1] == count


def test_a_condition_opens_only_the_files_that_it_needs(logs: Path, tmp_path: Path) -> None:
    take([logs], tmp_path / "store")
    table = open_logs(str(tmp_path / "store"))
    files = Where("day > 2026-11-01 and cc is null").files(table.files(kind="connection"))
    assert [file.values["day"] for file in files] == ["2026-11-02"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dya = 1", "did you mean 'day'"),
        ("day = ", "write a condition"),
        ("day", "not a condition"),
        ("day = 5", "attributes are texts"),
    ],
)
def test_wrong_conditions(logs: Path, tmp_path: Path, text: str, message: str) -> None:
    take([logs], tmp_path / "store")
    with pytest.raises(UserError, match=message):
        fingerprint(open_logs(str(tmp_path / "store")), Where(text))
