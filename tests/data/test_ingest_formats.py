"""Every registered format against its golden sample: recognised, every line and event right."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from data.errors import UserError
from data.formats import FORMATS, load, recognise
from data.formats.base import Lines, Options
from data.schema import VARIABLES

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
from regenerate import describe, sample  # noqa: E402

EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FORMATS)
def test_golden_sample(name: str, tmp_path: Path) -> None:
    found = describe(name, tmp_path)
    assert found == EXPECTED[name]
    assert found["format"] == [name]
    assert found["counts"]["events"] > 0


@pytest.mark.parametrize("name", FORMATS)
def test_only_its_own_format_claims_a_sample_most_strongly(name: str) -> None:
    head = sample(name).read_bytes()
    scores = {other: load(other).sniff(head) for other in FORMATS}
    best = max(scores.values())
    assert [other for other, score in scores.items() if score == best] == [name]
    assert load(name).DESCRIPTION


@pytest.mark.parametrize("name", FORMATS)
def test_result_does_not_depend_on_where_blocks_are_cut(name: str) -> None:
    """A reader given one line at a time finds what it finds in one block."""
    text = np.frombuffer(sample(name).read_bytes(), np.uint8)
    ends = np.flatnonzero(text == 10)
    starts = np.concatenate([[0], ends[:-1] + 1])
    module = load(name)
    whole = module.reader(Options())
    batch = whole.parse(Lines(text, starts, ends))
    single = module.reader(Options())
    status, events = [], []
    for start, end in zip(starts, ends, strict=True):
        piece = Lines(text[start : end + 1], np.zeros(1, np.int64), np.array([end - start]))
        part = single.parse(piece)
        status += part.status.tolist()
        events += list(zip(part.socket, part.variable, part.time_us, part.value, strict=True))
    assert status == batch.status.tolist()
    columns = (batch.socket, batch.variable, batch.time_us, batch.value)
    assert events == list(zip(*columns, strict=True))
    assert [s.connection for s in single.sockets()] == [s.connection for s in whole.sockets()]


def test_head_of_nothing_and_of_bytes_is_nobodys() -> None:
    assert recognise(b"") is None
    assert recognise(bytes(range(256)) * 20) is None
    assert recognise(b"The quick brown fox\njumps over 3 dogs\n") is None


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UserError, match="probe-csv"):
        load("probe_csv")


def test_variables_have_the_codes_that_compiled_readers_use() -> None:
    from data.formats import base

    names = ["RTT", "SRTT", "CA_STATE", "ACK", "CWND", "RETRANSMIT", "THROUGHPUT", "CAPACITY"]
    assert [getattr(base, name) for name in names] == list(range(len(VARIABLES)))
    assert list(VARIABLES)[base.CWND] == "snd_cwnd"
    assert list(VARIABLES)[base.CAPACITY] == "capacity_bps"


def test_tcpprobe_unit_follows_the_log_or_the_option(tmp_path: Path) -> None:
    from data.ingest import Settings, ingest
    from data.store import read_connections

    log = sample("tcpprobe")
    in_us = tmp_path / "us.txt"
    lines = log.read_text().replace(" 61 ", " 61000 ").replace(" 62 ", " 62000 ")
    in_us.write_text(lines.replace(" 63 ", " 63000 "))
    for path, unit, low in [
        (log, "auto", 61000), (in_us, "auto", 61000), (log, "us", 61), (log, "ms", 61000),
    ]:  # fmt: skip
        ingest([path], tmp_path / "out", settings=Settings(srtt_unit=unit))
        (subflow,) = read_connections(tmp_path / "out")["subflows"].to_list()[0]
        assert subflow["min_rtt_us"] == low, (path, unit)
