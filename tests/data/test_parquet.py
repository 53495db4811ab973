"""Files of events, connections and refused lines: what other readers find in them."""

import errno
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arro3.core import Array, DataType, RecordBatch

from data import parquet, quarantine
from data.schema import CONNECTIONS, QUARANTINE
from data.store import VARIABLE_NAMES, PartWriter, iter_connections

NO_SUBFLOWS = {**dict.fromkeys(CONNECTIONS.names), "subflows": []}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Three connections, of which the second is longer than two parts."""
    monkeypatch.setattr("data.store.PART_ROWS", 100)
    (tmp_path / "events").mkdir()
    writer = PartWriter(tmp_path / "events", "part-00000")
    rng = np.random.default_rng(0)
    given = {}
    for name, lengths in {"a": (30,), "b": (90, 90, 90), "c": (5,)}.items():
        writer.begin(name)
        for variable in (0, 4):
            time_us = np.sort(rng.integers(0, 10**12, sum(lengths)))
            value = rng.integers(-(2**40), 2**40, sum(lengths))
            given[name, VARIABLE_NAMES[variable]] = time_us, value
            for stop in np.cumsum(lengths):
                piece = slice(stop - lengths[0], stop)
                writer.add(1, variable, time_us[piece], value[piece])
    writer.close()
    rows = [{**NO_SUBFLOWS, "connection": name, "site": name} for name in "abc"]
    parquet.write_connections(tmp_path / "connections.parquet", rows, ["site"])
    (tmp_path / "ingest.json").write_text("{}")
    return tmp_path, given


def test_a_connection_goes_on_in_the_next_part(written):
    folder, given = written
    assert len(list((folder / "events").iterdir())) > 3
    for wanted in (None, {"b"}, {"a", "c"}, set()):
        found = {
            (row["connection"], variable): pair
            for row, series in iter_connections(folder, wanted)
            for variable, pair in series[1].items()
        }
        assert set(found) == {key for key in given if wanted is None or key[0] in wanted}
        for key, pair in found.items():
            np.testing.assert_array_equal(pair, given[key])


def test_events_have_the_types_that_earlier_files_have(written):
    folder, _ = written
    files = sorted((folder / "events").iterdir())
    for path in files:
        assert pq.read_schema(path).equals(
            pa.schema(
                [
                    ("connection", pa.dictionary(pa.int32(), pa.string())),
                    ("subflow", pa.int16()),
                    ("time_us", pa.int64()),
                    ("variable", pa.dictionary(pa.int8(), pa.string())),
                    ("value", pa.int64()),
                ]
            )
        )
    group = pq.ParquetFile(files[0]).metadata.row_group(0)
    assert {group.column(i).compression for i in range(5)} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in group.column(2).encodings
    names = pl.scan_parquet(files).select(pl.col("connection").cast(pl.String)).collect()
    assert names.to_series().value_counts().sort("connection")["count"].to_list() == [60, 540, 10]


def test_files_of_another_library_are_read(written):
    folder, given = written
    files = sorted((folder / "events").iterdir())
    table = pa.concat_tables([pq.read_table(path) for path in files])
    for path in files[1:]:
        path.unlink()
    pq.write_table(table.unify_dictionaries(), files[0], row_group_size=64)
    found = {row["connection"]: series for row, series in iter_connections(folder)}
    np.testing.assert_array_equal(found["b"][1]["snd_cwnd"], given["b", "snd_cwnd"])


def test_connections_keep_nulls_and_subflows(tmp_path):
    subflow = {"subflow": 1, "sport": -1, "dport": 5000, "min_rtt_us": 7, "rtt_kind": "raw",
               "events": 3}  # fmt: skip
    rows = [
        {**NO_SUBFLOWS, "connection": "é", "start_us": 1, "subflows": [subflow, subflow]},
        {**NO_SUBFLOWS, "connection": "b", "case": "x"},
    ]
    parquet.write_connections(tmp_path / "c.parquet", rows, ["case"])
    expected = [{**row, "case": row.get("case")} for row in rows]
    assert pl.read_parquet(tmp_path / "c.parquet").to_dicts() == expected
    assert pq.read_table(tmp_path / "c.parquet").to_pylist() == expected


def test_joined_quarantine_has_all_rows_in_order_and_the_pieces_go(tmp_path):
    files = []
    for number in range(3):
        lines = np.arange(number * 10, number * 10 + 10)
        columns = [
            Array(["log"] * 10, DataType.utf8()), *[Array.from_numpy(lines)] * 3,
            Array(["why"] * 10, DataType.utf8()), Array([str(n) for n in lines], DataType.utf8()),
        ]  # fmt: skip
        files.append(tmp_path / f"{number}.parquet")
        batch = RecordBatch.from_arrays(columns, schema=QUARANTINE)
        parquet.write(files[-1], QUARANTINE, [batch])
    quarantine.join(files, tmp_path / "all.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]
    assert pl.read_parquet(tmp_path / "all.parquet")["text"].to_list() == [*map(str, range(30))]
    quarantine.join([], tmp_path / "none.parquet")
    assert pl.read_parquet(tmp_path / "none.parquet").columns == QUARANTINE.names


def test_a_full_disk_is_an_error_of_the_system_and_no_panic(capfd):
    rows = [{**NO_SUBFLOWS, "connection": "a"}]
    with pytest.raises(OSError, match="No space left"):
        parquet.write_connections(Path("/dev/full"), rows)
    assert capfd.readouterr().err == ""
    with pytest.raises(FileNotFoundError):
        parquet.write(Path("/nowhere/q.parquet"), QUARANTINE, [])


class Told(BaseException):
    """What a handler of a signal raises."""


def write_no_events(path):
    none = np.array([], np.int32)
    keys = (parquet.coded(["x"], none, key()) for key in (DataType.int32, DataType.int8))
    connection, variable = keys
    long = none.astype(np.int64)
    parquet.write_events(
        path, parquet.events(connection, none.astype(np.int16), long, variable, long)
    )


def write_a_connection(path):
    parquet.write_connections(path, [{**NO_SUBFLOWS, "connection": "a"}])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("write", [write_no_events, write_a_connection])
def test_a_signal_during_the_library_s_work_is_raised_after_it(
    write, number, tmp_path, monkeypatch, capfd
):
    """Within the library the handler's exception would be a panic with a text of its own."""
    to_disk = parquet._File.write

    def interrupted(file, data):
        signal.raise_signal(number)
        return to_disk(file, data)

    def handler(*_):
        raise Told

    monkeypatch.setattr(parquet._File, "write", interrupted)
    former = signal.signal(number, handler)
    try:
        with pytest.raises(Told):
            write(tmp_path / "a.parquet")
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, former)
    assert capfd.readouterr().err == ""
    pq.read_metadata(tmp_path / "a.parquet")


@pytest.fixture
def interruptible():
    """SIGINT as a person's own command has it: background jobs of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_within_the_batches_is_one(tmp_path):
    def batches():
        signal.raise_signal(signal.SIGINT)
        yield from ()

    with pytest.raises(KeyboardInterrupt):
        parquet.write(tmp_path / "a.parquet", QUARANTINE, batches())


def test_a_thread_of_its_own_writes_as_well(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(parquet.write, tmp_path / "a.parquet", QUARANTINE, []).result()
    assert pl.read_parquet(tmp_path / "a.parquet").columns == QUARANTINE.names


def test_what_the_batches_raise_arrives_as_it_is(tmp_path, monkeypatch):
    first = OSError(errno.EIO, "Input/output error", "piece.parquet")

    def unreadable(*_, **__):
        raise first

    monkeypatch.setattr(quarantine, "read_parquet", unreadable)
    with pytest.raises(OSError, match="Input/output error") as raised:
        quarantine.join([tmp_path / "piece.parquet"], tmp_path / "all.parquet")
    assert raised.value is first
