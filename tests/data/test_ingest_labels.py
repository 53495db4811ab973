"""Labels: matching to files, attribute columns, mistakes; the command's JSON and exit codes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from data.errors import UserError
from data.ingest import Settings, ingest
from data.labels import read_labels
from data.store import iter_connections, read_connections
from pipelines.cli import main

KLOG = (Path(__file__).parents[1] / "golden/klog.klog").read_bytes()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("a/run1.csv.gz", "b/run1.csv.gz", "b/run2.klog", "run3.csv.gz"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(KLOG) if name.endswith(".gz") else KLOG)
    return tmp_path / "logs"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def labels_of(logs: Path, out: Path, table: str) -> tuple[dict[str, str | None], dict]:  # type: ignore[type-arg]
    report = ingest([logs], out, write(out.parent / "t.csv", table), Settings(jobs=1))
    frame = read_connections(out)
    return dict(zip(frame["source"], frame["label"], strict=True)), report


@pytest.mark.parametrize(
    ("source", "matched"),
    [
        ("run3.csv.gz", "run3.csv.gz"),
        ("./run3.csv.gz", "run3.csv.gz"),
        ("run3", "run3.csv.gz"),
        ("run3.csv", "run3.csv.gz"),
        ("run2", "b/run2.klog"),
        ("a/run1", "a/run1.csv.gz"),
        ("logs/b/run1.csv", "b/run1.csv.gz"),
        ("/elsewhere/logs/b/run1.csv", "b/run1.csv.gz"),
        ("run1", None),
        ("run", None),
        ("nowhere/run1", None),
    ],
)
def test_matching(source: str, matched: str | None, logs: Path, tmp_path: Path) -> None:
    found, report = labels_of(logs, tmp_path / "out", f"source,label\n{source},sb\n")
    # The compact log's own label is NSB; the file's label overrides it.
    assert {name for name, label in found.items() if label == "SB"} == {matched} - {None}
    assert report["labels_unmatched"] == (matched is None)
    assert report["sources_unlabelled"] == 4 - (matched is not None)


def test_absolute_path_matches(logs: Path, tmp_path: Path) -> None:
    found, _ = labels_of(logs, tmp_path / "out", f"source,label\n{logs}/a/run1.csv.gz,SB\n")
    assert found["a/run1.csv.gz"] == "SB"
    assert found["b/run1.csv.gz"] == "NSB"


def test_columns_become_attributes(logs: Path, tmp_path: Path) -> None:
    table = "source,label,site,wifi_sport,dataset\nrun3,SB,4,040001,paper\nrun2,,5,,\n"
    labels_of(logs, tmp_path / "out", table)
    rows = {row["source"]: row for row, _ in iter_connections(tmp_path / "out")}
    assert rows["run3.csv.gz"]["site"] == "4"
    assert rows["run3.csv.gz"]["wifi_sport"] == "040001"
    assert rows["run3.csv.gz"]["dataset"] == "paper"
    assert rows["b/run2.klog"]["wifi_sport"] is None
    assert rows["b/run2.klog"]["label"] == "NSB"
    assert rows["a/run1.csv.gz"]["site"] is None


def test_labels_file_in_the_directory_is_used_and_not_ingested(logs: Path, tmp_path: Path) -> None:
    write(logs / "labels.csv", "source,label\nrun3,SB\n")
    report = ingest([logs], tmp_path / "out")
    assert report["sources"] == 4
    assert report["labels_files"] == [str(logs / "labels.csv")]
    frame = read_connections(tmp_path / "out")
    assert dict(zip(frame["source"], frame["label"], strict=True))["run3.csv.gz"] == "SB"


def test_labels_file_of_each_directory_labels_its_own_logs(logs: Path, tmp_path: Path) -> None:
    write(logs / "a/labels.csv", "source,label,site\nrun1,SB,x\n")
    write(logs / "b/labels.csv", "source,label,rate\nrun1,NSB,5\nrun3,SB,6\n")
    report = ingest([logs], tmp_path / "out")
    rows = {row["source"]: row for row, _ in iter_connections(tmp_path / "out")}
    assert (rows["a/run1.csv.gz"]["label"], rows["b/run1.csv.gz"]["label"]) == ("SB", "NSB")
    assert (rows["a/run1.csv.gz"]["site"], rows["a/run1.csv.gz"]["rate"]) == ("x", None)
    assert rows["b/run1.csv.gz"]["rate"] == "5"
    assert (report["labels_unmatched"], report["sources_unlabelled"]) == (1, 2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("name,label\nx,SB\n", "no column 'source'"),
        ("", "no column 'source'"),
        ("source,label\nx,maybe\n", "line 2: label 'maybe'"),
        ("source,label\nx,SB,1\n", "line 2 has 3 fields"),
        ("source,label,label\nx,SB,SB\n", "column names"),
        ("source,token\nx,SB\n", "column 'token'"),
        ("source,label\nrun3,SB\nrun3.csv,NSB\n", "lines 2 and 3 both describe run3.csv.gz"),
    ],
)
def test_mistakes(table: str, message: str, logs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        labels_of(logs, tmp_path / "out", table)
    assert not (tmp_path / "out").exists()


def test_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfsource,label\r\nx,nsb\r\n")
    assert read_labels(path).rows == [{"source": "x", "label": "NSB"}]


def test_connection_key_joins_files(logs: Path, tmp_path: Path) -> None:
    report = ingest([logs], tmp_path / "out", settings=Settings(connection_key="(run1)"))
    assert report["connections"] == 3
    joined = next(r for r, _ in iter_connections(tmp_path / "out") if "run1" in r["connection"])
    assert [subflow["subflow"] for subflow in joined["subflows"]] == [1, 2, 3, 4]
    with pytest.raises(UserError, match="exactly one group"):
        ingest([logs], tmp_path / "out", settings=Settings(connection_key="run1"))


def test_command(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["ingest", str(logs), "--out", out, "--json", "--jobs", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["connections"] == 4
    assert report["subflows"] == 8
    assert report["formats"] == {"klog": 4}
    assert report["lines_read"] == report["event_lines"] + report["skipped_lines"] == 44

    assert main(["ingest", str(tmp_path / "none"), "--out", out]) == 2
    assert main(["ingest", str(logs), "--out", out, "--format", "klogg"]) == 2
    error = capsys.readouterr().err
    assert "no such file" in error
    assert "did you mean 'klog'" in error

    nothing = write(tmp_path / "diary.txt", "nothing\n")
    assert main(["ingest", str(nothing), "--out", out]) == 1
    assert "no events" in capsys.readouterr().err
    assert (tmp_path / "out/quarantine.parquet").exists()


def test_jobs_do_not_change_the_result(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.ingest.SHARD_BYTES", 1)
    contents = []
    for jobs in (1, 2):
        out = tmp_path / f"out{jobs}"
        ingest([logs], out, settings=Settings(jobs=jobs))
        files = sorted(p for p in out.rglob("*.parquet"))
        contents.append([(p.relative_to(out).as_posix(), p.read_bytes()) for p in files])
    assert contents[0] == contents[1]
    assert len(contents[0]) == 6
