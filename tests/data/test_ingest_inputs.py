"""What is read: order marks, headers, names that are no text, pipes, devices, junk."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from data.errors import UserError
from data.formats import FORMATS
from data.ingest import Settings, ingest
from data.labels import read_labels
from data.names import original, printable
from data.store import iter_connections, read_connections
from pipelines.output import _Pace, progress_bytes, size

GOLDEN = Path(__file__).parents[1] / "golden"
SAMPLES = {name: next(GOLDEN.glob(f"{name}.*")).read_bytes() for name in FORMATS}
CCZOO = [sys.executable, "-m", "pipelines.cli"]


def result(path: Path, out: Path, **kwargs: Any) -> tuple[Any, ...]:
    """Counts, connections, events and refused lines of one log."""
    report = ingest([path], out, settings=Settings(jobs=1, **kwargs))
    events = [
        (row["connection"], row["token"], subflow, variable, t.tolist(), v.tolist())
        for row, series in iter_connections(out)
        for subflow, variables in series.items()
        for variable, (t, v) in variables.items()
    ]
    refused = pl.read_parquet(out / "quarantine.parquet")
    counts = {k: v for k, v in report.items() if k not in ("seconds", "bytes")}
    assert refused["count"].sum() == report["quarantined_lines"]
    return counts, events, refused.drop("byte_offset").rows(), refused["byte_offset"].to_list()


@pytest.mark.parametrize("name", FORMATS)
def test_order_marks_change_nothing(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(SAMPLES[name])
    plain = result(log, tmp_path / "out")
    assert plain[0]["formats"] == {name: 1}
    log.write_bytes(b"\xef\xbb\xbf" + SAMPLES[name])
    marked = result(log, tmp_path / "out")
    assert marked[:3] == plain[:3]
    # Offsets are those in the file, where the mark is.
    assert marked[3] == [offset + 3 for offset in plain[3]]
    assert result(log, tmp_path / "out", format=name)[:3] == plain[:3]
    for encoding in ("utf-16", "utf-32"):
        log.write_bytes(SAMPLES[name].decode("utf-8", "replace").encode(encoding))
        if b"\xef\xbf\xbd" not in SAMPLES[name].decode("utf-8", "replace").encode():
            assert result(log, tmp_path / "out") == plain
    log.write_bytes(gzip.compress(b"\xef\xbb\xbf" + SAMPLES[name]))
    assert result(log, tmp_path / "out")[:3] == plain[:3]


def test_order_mark_before_a_header_in_between(tmp_path: Path) -> None:
    """Files put together have it there; the second has its columns in another order."""
    header, *rows = SAMPLES["probe-csv"].split(b"\n")
    names = header.split(b",")
    order = [*range(1, len(names)), 0]
    turned = [
        b",".join(line.split(b",")[i] for i in order)
        for line in [header, *rows]
        if line.count(b",") == len(names) - 1
    ]
    log = tmp_path / "log"
    # A header that begins with another column is none that is known here: its rows are refused.
    log.write_bytes(SAMPLES["probe-csv"] + b"\xef\xbb\xbf" + b"\n".join([header, *rows]))
    doubled = result(log, tmp_path / "out")
    log.write_bytes(SAMPLES["probe-csv"] + b"\n".join([header, *rows]))
    assert doubled[:3] == result(log, tmp_path / "out")[:3]
    log.write_bytes(b"\n".join(turned))
    assert result(log, tmp_path / "out", format="probe-csv")[1] == []


@pytest.mark.parametrize(
    "header",
    [
        b"\xff\xfets;ev;sport",
        b"ts;ev;sport;dport",
        b"ts,ev,sport",
        b"time,event,sport,dport,rtt_us",
        b"ts,ev,sport,dport,rtt_us,rtt_us",
        b'"ts","ev","sport","dport"',
    ],
)
def test_unreadable_header_refuses_the_file(header: bytes, tmp_path: Path) -> None:
    rows = SAMPLES["probe-csv"].split(b"\n")[1:-1]
    log = tmp_path / "log"
    log.write_bytes(b"\n".join([header, *rows]))
    counts, events, refused, _ = result(log, tmp_path / "out", format="probe-csv")
    assert events == []
    assert counts["event_lines"] == 0
    told = {row[3] for row in refused}
    assert told == {"the header above it can't be read, so what its columns are isn't known"}


def test_rows_of_all_columns_need_no_header(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(SAMPLES["probe-csv"])
    whole = result(log, tmp_path / "out")
    log.write_bytes(SAMPLES["probe-csv"].split(b"\n", 1)[1])
    assert result(log, tmp_path / "out")[1] == whole[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"#cczoo-klog 1", b"#cczoo-klog 2"), (b'"t0_us"', b'"t1_us"'), (b"dt_us,sf", b"sf,dt_us")],
)
def test_unreadable_header_of_a_compact_log(before: bytes, after: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert before in SAMPLES["klog"]
    log.write_bytes(SAMPLES["klog"].replace(before, after))
    counts, events, refused, _ = result(log, tmp_path / "out")
    assert (events, counts["event_lines"]) == ([], 0)
    assert "the header above it can't be read" in refused[0][3]


def test_column_named_twice_is_not_guessed(tmp_path: Path) -> None:
    head, rest = SAMPLES["starlink-vs-cellular"].split(b"\n", 1)
    log = tmp_path / "log"
    log.write_bytes(head + b",throughput\n" + rest)
    assert result(log, tmp_path / "out")[1] == []


def test_labels_with_an_order_mark_and_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("source,label\na.klog,SB\n", encoding="utf-8-sig")
    assert read_labels(path).rows == [{"source": "a.klog", "label": "SB"}]
    path.write_text("source,label\na.klog,SB\n", encoding="utf-16")
    assert read_labels(path).rows == [{"source": "a.klog", "label": "SB"}]


def test_settings_with_an_order_mark(tmp_path: Path) -> None:
    from pipelines import params

    path = tmp_path / "params.yaml"
    path.write_text("models:\n  sbd:\n    seed: 7\n", encoding="utf-8-sig")
    assert params.load(path).models.sbd.seed == 7


@pytest.mark.parametrize(
    "raw", [b"b\xff.klog", b"tab\there", b"back\\slash", "b\xfcro".encode(), b"\x7f\xc3"]
)
def test_any_name_is_written_as_text_and_can_be_had_back(raw: bytes) -> None:
    text = printable(os.fsdecode(raw))
    text.encode()
    assert text.isprintable()
    assert os.fsencode(original(text)) == raw


def test_name_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipelines.cli import main

    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / os.fsdecode(b"a\xff.klog")).write_bytes(SAMPLES["klog"])
    (logs / os.fsdecode(b"b\xfe.txt")).write_bytes(b"Dear diary\n")
    (logs / "c.klog").write_bytes(SAMPLES["klog"])
    (logs / "labels.csv").write_text("source,label,site\na\\xff.klog,NSB,here\nc.klog,SB,there\n")
    assert main(["ingest", str(logs), "--out", str(tmp_path / "out")]) == 0
    rows = read_connections(tmp_path / "out").select("source", "label", "site").rows()
    assert rows == [("a\\xff.klog", "NSB", "here"), ("c.klog", "SB", "there")]
    refused = pl.read_parquet(tmp_path / "out/quarantine.parquet")
    assert refused["source"].to_list() == ["b\\xfe.txt"]
    capsys.readouterr()
    assert main(["ingest", str(logs), "--out", str(tmp_path / os.fsdecode(b"o\xff"))]) == 2
    assert "not a name in UTF-8" in capsys.readouterr().err


def test_pipes_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.klog"
    log.write_bytes(SAMPLES["klog"])
    expected = result(log, tmp_path / "out")
    packed = gzip.compress(SAMPLES["klog"])
    told = subprocess.run(
        [*CCZOO, "ingest", "-", "--out", str(tmp_path / "piped")], input=packed, capture_output=True
    )
    assert told.returncode == 0, told.stderr
    piped = [(row["source"], series) for row, series in iter_connections(tmp_path / "piped")]
    assert [name for name, _ in piped] == ["stdin"]
    assert sum(len(t) for s in piped[0][1].values() for t, _ in s.values()) == expected[0]["events"]
    assert sorted(p.name for p in (tmp_path / "piped").iterdir()) == [
        "connections.parquet", "events", "ingest.json", "quarantine.parquet",
    ]  # fmt: skip
    pipe = tmp_path / "b.klog"
    os.mkfifo(pipe)
    monkeypatch.setattr("data.given.WRITER_PATIENCE_S", 120)

    def write() -> None:
        time.sleep(0.5)  # the reader comes first
        with pipe.open("wb") as file:
            for start in range(0, len(SAMPLES["klog"]), 50):
                file.write(SAMPLES["klog"][start : start + 50])
                file.flush()
                time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    assert [e[2:] for e in result(pipe, tmp_path / "out")[1]] == [e[2:] for e in expected[1]]
    writer.join()


def test_pipe_without_a_writer_and_devices_are_refused_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data.given.WRITER_PATIENCE_S", 0.3)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe: a pipe that nobody writes to"):
        ingest([tmp_path / "pipe"], tmp_path / "out")
    with pytest.raises(UserError, match=r"/dev/zero: is a terminal or a device, not a log"):
        ingest([Path("/dev/zero")], tmp_path / "out")
    with pytest.raises(UserError, match=r"/dev/zero: not a file: give a readable labels file"):
        read_labels(Path("/dev/zero"))
    told = subprocess.run(
        [*CCZOO, "ingest", "-", "--out", str(tmp_path / "out")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 2
    assert told.stderr == (
        "cczoo ingest: -: standard input is a terminal or a device: pipe a log into it\n"
    )
    words = shlex.join([*CCZOO, "ingest", "-", "--out", str(tmp_path / "out")])
    told = subprocess.run(["sh", "-c", f"{words} <&-"], capture_output=True, text=True)
    assert told.returncode == 2
    assert told.stderr == "cczoo ingest: -: standard input is closed: pipe a log into it\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    # In a directory they are left out, as everything is that is no file.
    (tmp_path / "a.klog").write_bytes(SAMPLES["klog"])
    assert ingest([tmp_path], tmp_path.with_name(f"{tmp_path.name}-out"))["sources"] == 1


def test_unlistable_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs/closed").mkdir(parents=True)
    (tmp_path / "logs/a.klog").write_bytes(SAMPLES["klog"])
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # root may list anything
    with pytest.raises(UserError, match="closed: permission denied: make it readable"):
        ingest([tmp_path / "logs"], tmp_path / "out")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_file_of_line_ends_is_one_row(end: bytes, tmp_path: Path) -> None:
    lines = 5_000_000
    (tmp_path / "log").write_bytes(end)
    result(tmp_path / "log", tmp_path / "out")  # what is made ready once
    (tmp_path / "log").write_bytes(end * lines)
    started = time.process_time()
    counts, _, refused, offsets = result(tmp_path / "log", tmp_path / "out")
    ended = time.process_time()
    for _ in range(lines):
        pass
    # It takes five times as long as counting does, and took 200 times as long.
    assert ended - started < 50 * (time.process_time() - ended)
    assert counts["lines_read"] == counts["quarantined_lines"] == lines
    assert [row[1:3] for row in refused] == [(1, lines)]
    assert offsets == [0]


def test_runs_of_equal_lines_and_all_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the blocks: rows and counts say which lines were there, and where."""
    lines = [b"x"] * 3 + [b"y"] + [b"x"] * 2 + [b""] * 500 + ["é".encode()] * 2 + [b"\xff", b"x"]
    lines += [b"%d" % i for i in range(300)] + [b"tail"] * 400
    (tmp_path / "log").write_bytes(b"\n".join(lines) + b"\n")
    whole = result(tmp_path / "log", tmp_path / "out")
    found = pl.read_parquet(tmp_path / "out/quarantine.parquet")
    offset, line = 0, 1
    expected = []
    for i, text in enumerate(lines):
        if i and text == lines[i - 1]:
            expected[-1][1] += 1
        else:
            expected.append([line, 1, offset, text.decode("utf-8", "backslashreplace")])
        line, offset = line + 1, offset + len(text) + 1
    rows = found.select("line", "count", "byte_offset", "text").rows()
    assert [list(row) for row in rows] == expected
    for block in (1, 7, 64):
        monkeypatch.setattr("data.stream.BLOCK_BYTES", block)
        assert result(tmp_path / "log", tmp_path / "out") == whole


def test_bytes_of_a_line_without_an_end_are_counted(tmp_path: Path) -> None:
    for text in (b"7" * 3_000_000, b"7" * 3_000_000 + b"\n"):
        (tmp_path / "log").write_bytes(text)
        assert ingest([tmp_path / "log"], tmp_path / "out")["bytes"] == len(text)
    assert [size(n) for n in (0, 999, 1500, 3_400_000, 10_000_000_000)] == [
        "0 bytes", "999 bytes", "1.5 kB", "3.4 MB", "10.0 GB",
    ]  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_the_bytes_of_all_files(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import contextmanager

    monkeypatch.setattr("data.ingest.SHARD_BYTES", 1)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.klog").write_bytes(SAMPLES["klog"])
    (logs / "b.txt").write_bytes(b"junk %d\n" * 500_000)
    (logs / "c.klog.gz").write_bytes(gzip.compress(SAMPLES["klog"]))
    seen: list[int] = []
    totals: list[int] = []

    @contextmanager
    def progress(_: str, total: int) -> Any:
        totals.append(total)
        yield seen.append

    ingest([logs], tmp_path / "out", settings=Settings(jobs=jobs), progress=progress)
    assert totals == [sum(path.stat().st_size for path in logs.iterdir())]
    assert seen == sorted(seen)
    assert seen[-1] == totals[0]
    assert jobs > 1 or len(seen) > 4, "no progress inside the large file"


def test_time_left_follows_the_pace_of_the_last_minute() -> None:
    pace = _Pace("ingest")
    # Twenty seconds of preparation, then a slow minute, then ten times as fast.
    assert pace.left_s(20, 0, 1000) is None
    for second in range(60):
        slow = pace.left_s(20 + second, 1 + second, 1000)
    assert slow == pytest.approx(1000 - 60, rel=0.02)
    for second in range(70):
        fast = pace.left_s(80 + second, 61 + 10 * second, 1000)
    assert fast == pytest.approx((1000 - 751) / 10, rel=0.05)


def test_lines_of_progress_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with progress_bytes("ingest", 4_000_000_000) as show:
        for second in range(1, 22):
            now[0] = float(second)
            show(second * 100_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "ingest: 1.0 GB of 4.0 GB, 30 s left",
        "ingest: 2.0 GB of 4.0 GB, 20 s left",
    ]
