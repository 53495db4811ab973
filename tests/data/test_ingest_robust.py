"""What may come in: damaged, hostile, unordered, doubled. Never a traceback, never a lost line."""

from __future__ import annotations

import errno
import gzip
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data import stream
from data.errors import UserError
from data.formats import FORMATS
from data.formats.base import MAX_LINE_BYTES
from data.ingest import Settings, ingest
from data.store import iter_connections, read_connections

GOLDEN = Path(__file__).parents[1] / "golden"
SAMPLES = {name: next(GOLDEN.glob(f"{name}.*")).read_bytes() for name in FORMATS}


def read(tmp_path: Path, content: bytes, name: str = "log", **kwargs: Any) -> dict[str, Any]:
    path = tmp_path / name
    path.write_bytes(content)
    report = ingest([path], tmp_path / "out", settings=Settings(**kwargs))
    check(report, tmp_path / "out")
    return report


def check(report: dict[str, Any], out: Path) -> None:
    """The invariants of every ingestion."""
    accounted = report["event_lines"] + report["skipped_lines"] + report["quarantined_lines"]
    assert report["lines_read"] == accounted
    quarantine = pl.read_parquet(out / "quarantine.parquet")
    assert quarantine["count"].sum() == report["quarantined_lines"]
    connections = read_connections(out)
    assert len(connections) == report["connections"] == connections["connection"].n_unique()
    events = 0
    for row, series in iter_connections(out):
        assert {s["subflow"] for s in row["subflows"]} == set(series)
        for variables in series.values():
            for time_us, value in variables.values():
                assert len(time_us) == len(value) > 0
                assert (np.diff(time_us) >= 0).all()
                assert row["start_us"] <= time_us[0]
                assert time_us[-1] <= row["end_us"]
                events += len(time_us)
    assert events == report["events"]


def events_of(out: Path) -> list[Any]:
    return [
        (subflow, variable, t.tolist(), v.tolist())
        for _, series in iter_connections(out)
        for subflow, variables in series.items()
        for variable, (t, v) in variables.items()
    ]


def probe_log(rows: int = 300, seed: int = 1) -> list[bytes]:
    """Rows of one sender with two subflows, ACK numbers that wrap, times that strictly rise."""
    rng = random.Random(seed)
    header = SAMPLES["probe-csv"].split(b"\n")[0]
    lines, now = [header], 5_000_000
    una = {1: 2**32 - 50_000, 2: 7}
    delivered = {1: 1, 2: 1}
    for _ in range(rows):
        now += rng.randrange(2, 900)
        subflow = rng.choice((1, 2))
        step = rng.choice((0, 1400, 2800))
        ack = (una[subflow] + step) % 2**32
        lines.append(
            f"{now // 10**6}.{now % 10**6:06d}123,probe,9,79b8026a,4026532001,{subflow},"
            f"{40000 + subflow},5000,0,0,{ack},{una[subflow]},0,0,{rng.randrange(10, 13)},99,"
            f"30000,{rng.randrange(30000, 40000)},30000,{delivered[subflow]},0,0,0,11,0".encode()
        )
        una[subflow] = ack
        delivered[subflow] += step > 0
    return lines


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_mutilated_samples(name: str, seed: int, tmp_path: Path) -> None:
    from tests.fuzz.ingest_fuzz import mutate

    rng = random.Random(f"{name} {seed}")
    read(tmp_path, mutate(SAMPLES[name], rng), format=rng.choice(["auto", name]))


@given(content=st.binary(max_size=400), name=st.sampled_from(["auto", *FORMATS]))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_bytes_as_any_format(content: bytes, name: str, tmp_path: Path) -> None:
    report = read(tmp_path, content, format=name)
    if not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        assert report["lines_read"] == content.count(b"\n") + (content[-1:] not in (b"", b"\n"))


@given(st.data())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_hostile_numbers_in_a_probe_row(tmp_path: Path, data: st.DataObject) -> None:
    fields = probe_log(1)[1].split(b",")
    column = data.draw(st.integers(0, len(fields) - 1))
    number = st.integers(-(2**70), 2**70).map(lambda n: str(n).encode())
    fields[column] = data.draw(
        number | st.sampled_from([b"", b"nan", b"1e9", b"0x10", b"\0", b"-"])
    )
    rows = [*probe_log(20), b",".join(fields), *probe_log(5, seed=2)[1:]]
    report = read(tmp_path, b"\n".join(rows) + b"\n")
    assert report["event_lines"] + report["skipped_lines"] >= 25


def test_shuffled_log_gives_the_events_of_the_ordered_one(tmp_path: Path) -> None:
    lines = probe_log()
    report = read(tmp_path, b"\n".join(lines))
    expected = events_of(tmp_path / "out")
    rows = lines[1:]
    random.Random(3).shuffle(rows)
    shuffled = read(tmp_path, b"\n".join([lines[0], *rows]))
    assert shuffled["backwards_lines"] > 0
    assert events_of(tmp_path / "out") == expected
    assert shuffled["event_lines"] == report["event_lines"] == len(rows)


def test_doubled_log_gives_the_events_of_the_single_one(tmp_path: Path) -> None:
    lines = probe_log()
    read(tmp_path, b"\n".join(lines))
    expected = events_of(tmp_path / "out")
    doubled = read(tmp_path, b"\n".join(lines + lines))
    assert events_of(tmp_path / "out") == expected
    assert doubled["lines_read"] == 2 * len(lines)
    assert doubled["skipped_lines"] == len(lines) + 1
    each_twice = read(tmp_path, b"\n".join(line for line in lines for _ in range(2)))
    assert events_of(tmp_path / "out") == expected
    assert each_twice["backwards_lines"] == 0


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compressed_log_cut_short(pack: Any, tmp_path: Path) -> None:
    lines = probe_log(40_000)
    packed = pack(b"\n".join(lines))
    assert read(tmp_path, packed)["damaged_sources"] == 0
    whole = events_of(tmp_path / "out")
    report = read(tmp_path, packed[: len(packed) // 2])
    assert report["damaged_sources"] == 1
    assert 0.3 * len(lines) < report["event_lines"] < 0.7 * len(lines)
    reasons = pl.read_parquet(tmp_path / "out/quarantine.parquet")["reason"].to_list()
    assert "compressed data is damaged or ends early" in reasons
    # What was read is a beginning of what the whole gives.
    for part, full in zip(events_of(tmp_path / "out"), whole, strict=True):
        assert full[2][: len(part[2])] == part[2]


def test_gzip_of_several_members_and_zstd_of_several_frames(tmp_path: Path) -> None:
    first, second = SAMPLES["probe-csv"][:900], SAMPLES["probe-csv"][900:]
    read(tmp_path, SAMPLES["probe-csv"], "x")
    expected = events_of(tmp_path / "out")
    for pack in (gzip.compress, zstd.compress):
        read(tmp_path, pack(first) + pack(second), "x")
        assert events_of(tmp_path / "out") == expected


def test_zstd_may_end_only_where_a_frame_does(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = {zstd.CompressionParameter.checksum_flag: True}
    frames = [
        zstd.compress(bytes(range(200)), options=checked),
        b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes",
        zstd.compress(b"7" * 4000),
    ]
    texts = [bytes(range(200)), b"", b"7" * 4000]
    whole = {sum(map(len, frames[:i])): b"".join(texts[:i]) for i in range(4)}
    monkeypatch.setattr("data.stream.BLOCK_BYTES", 64)
    for size in range(sum(map(len, frames)) + 1):
        got = []
        packed = b"".join(frames)[:size]
        try:
            got += stream._unzstd(io.BytesIO(packed))
            assert b"".join(got) == whole[size]
        except stream.DamagedStream:
            assert size not in whole
    with pytest.raises(stream.DamagedStream):
        list(stream._unzstd(io.BytesIO(packed + b"more")))
    wide = {zstd.CompressionParameter.window_log: stream.MOST_WINDOW_LOG + 1}
    machine = zstd.ZstdCompressor(options=wide)
    with pytest.raises(stream.DamagedStream):
        list(stream._unzstd(io.BytesIO(machine.compress(b"7" * 4000) + machine.flush())))


def test_very_long_line_costs_one_quarantined_line(tmp_path: Path) -> None:
    lines = probe_log(50)
    long = b"7" * (MAX_LINE_BYTES * 12)
    report = read(tmp_path, b"\n".join([*lines[:20], long, *lines[20:]]) + b"\n")
    assert report["quarantined_lines"] == 1
    assert report["event_lines"] == 50
    row = pl.read_parquet(tmp_path / "out/quarantine.parquet").row(0, named=True)
    assert (row["line"], row["reason"], len(row["text"])) == (21, "line too long", 200)
    assert row["byte_offset"] == len(b"\n".join(lines[:20])) + 1


def test_iperf3_document_on_one_line_of_many_blocks(tmp_path: Path) -> None:
    stream = b'{"streams":[{"socket":5,"start":%d,"end":%d,"bits_per_second":1e6,"rtt":50}]}'
    body = b",".join(stream % (i, i + 1) for i in range(30_000))
    text = b'{"start":{"timestamp":{"timesecs":9}},"intervals":[' + body + b'],"end":{}}'
    assert len(text) > 4 * MAX_LINE_BYTES
    report = read(tmp_path, text)
    assert (report["lines_read"], report["event_lines"]) == (1, 1)
    assert report["events"] == 60_000


def test_unrecognised_file_is_quarantined_whole_beside_a_good_one(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.txt").write_bytes(b"Dear diary,\n\nnothing.\n")
    (logs / "b.csv").write_bytes(SAMPLES["probe-csv"])
    (logs / "c.bin").write_bytes(bytes(range(256)) * 50)
    report = ingest([logs], tmp_path / "out")
    check(report, tmp_path / "out")
    assert report["formats"] == {"probe-csv": 1, "unrecognised": 2}
    quarantine = pl.read_parquet(tmp_path / "out/quarantine.parquet")
    mine = quarantine.filter(pl.col("source") == "a.txt")
    assert mine["reason"].to_list() == ["unrecognised format"] * 3
    assert mine["byte_offset"].to_list() == [0, 12, 13]


def test_empty_file_and_missing_path(tmp_path: Path) -> None:
    assert read(tmp_path, b"")["lines_read"] == 0
    with pytest.raises(UserError, match="no such file"):
        ingest([tmp_path / "nowhere"], tmp_path / "out")
    # The earlier result is still there.
    assert read_connections(tmp_path / "out").is_empty()


def test_output_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("precious")
    (tmp_path / "log").write_bytes(SAMPLES["klog"])
    with pytest.raises(UserError, match=r"holds chapter1\.tex, which cczoo ingest didn't write"):
        ingest([tmp_path / "log"], out)
    assert (out / "chapter1.tex").read_text() == "precious"


def test_failed_ingestion_leaves_the_old_result_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(tmp_path, SAMPLES["klog"])
    before = events_of(tmp_path / "out")

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "a library's own words")

    monkeypatch.setattr("data.ingest._write_connections", fail)
    with pytest.raises(UserError, match="out: no space left on device: free some space"):
        ingest([tmp_path / "log"], tmp_path / "out")
    assert events_of(tmp_path / "out") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out"]


def test_events_spilled_to_disk_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"\n".join(probe_log(3000))
    read(tmp_path, text)
    expected = events_of(tmp_path / "out")
    monkeypatch.setattr("data.spool.MEMORY_BYTES", 1000)
    monkeypatch.setattr("data.stream.BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr("data.store.PART_ROWS", 777)
    report = read(tmp_path, text)
    assert events_of(tmp_path / "out") == expected
    assert report["event_lines"] == 3000
