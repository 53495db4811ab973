import csv

import numpy as np
import pytest
from backports import zstd

from data.errors import UserError
from data.lab import compact

HEADER = """
    ts ev cookie token netns sfid sport dport ca_state arg ack_seq snd_una snd_nxt data_len cwnd
    ssthresh srtt_us rtt_us min_rtt_us delivered lost retrans_out sacked_out packets_out
    total_retrans
""".split()  # noqa: SIM905


def _row(ts, ev, sfid, sport, **values):
    row = dict.fromkeys(HEADER, 0)
    row |= {"ts": ts, "ev": ev, "token": "0dcd4e46", "sfid": sfid, "sport": sport, "dport": 5000}
    return row | values


def _write(path, rows, tail=""):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        file.write(tail)


def _random_rows(seed, n=400):
    """Rows of two subflows whose first sequence numbers wrap, and what must come back."""
    rng = np.random.default_rng(seed)
    seq = {1: 2**32 - 3000, 2: 123}
    state = {1: [0, 0, 10], 2: [0, 0, 10]}
    rows, kept = [], []
    time_us = 10**9
    previous = {}
    for _ in range(n):
        time_us += int(rng.integers(0, 3000))
        sf = int(rng.integers(1, 3))
        sport = 40000 - sf
        ts = f"{time_us // 10**6}.{time_us % 10**6:06d}{rng.integers(1000):03d}"
        kind = rng.random()
        if kind < 0.05:
            old, new = rng.integers(0, 5, 2)
            rows.append(_row(ts, "state", sf, sport, ca_state=old, arg=new, cwnd=3, rtt_us=9))
            kept.append((time_us, 1, sf, 0, 0, 0, 0, int(old), int(new)))
            continue
        if kind < 0.1:
            rows.append(_row(ts, "rtx", sf, sport, ack_seq=77))
            kept.append((time_us, 2, sf, 0, 0, 0, 0, 0, 0))
            continue
        if rng.random() < 0.7:
            state[sf][0] += int(rng.integers(0, 3)) * 1424
            state[sf][1] = int(rng.integers(0, 3)) and int(rng.integers(20000, 90000))
            state[sf][2] += int(rng.integers(-1, 2))
        ack, rtt, cwnd = state[sf]
        srtt = int(rng.integers(1, 9)) if rtt == 0 else 55
        values = {"ack_seq": (seq[sf] + ack) % 2**32, "snd_una": seq[sf] if not previous.get(sf)
                  else 5, "rtt_us": rtt, "cwnd": cwnd, "srtt_us": srtt}  # fmt: skip
        rows.append(_row(ts, "probe", sf, sport, **values))
        if previous.get(sf) != (ack, rtt, cwnd):
            kept.append((time_us, 0, sf, ack, rtt, cwnd, srtt if rtt == 0 else 0, 0, 0))
        previous[sf] = (ack, rtt, cwnd)
    return rows, kept


@pytest.mark.parametrize("seed", range(8))
def test_round_trip_keeps_every_kept_column_exactly(tmp_path, seed):
    rows, kept = _random_rows(seed)
    receiver = dict(rows[5], sport=5000, dport=40001, ev="probe")
    _write(tmp_path / "p.csv", [*rows[:9], receiver, *rows[9:]])
    events, meta = compact.read_probe(tmp_path / "p.csv")
    size = compact.write(tmp_path / "x.klog.zst", events, {"cc": "reno", **meta})
    assert size == (tmp_path / "x.klog.zst").stat().st_size
    back, header = compact.expand(tmp_path / "x.klog.zst")
    want = np.array(kept).T
    assert back.t0_us == want[0][0]
    assert header["cc"] == "reno"
    assert header["subflows"]["1"]["sport"] == 39999
    names = ("kind", "subflow", "ack", "rtt_us", "cwnd", "srtt_us", "old", "new")
    np.testing.assert_array_equal(back.time_us + back.t0_us, want[0])
    for name, column in zip(names, want[1:], strict=True):
        np.testing.assert_array_equal(getattr(back, name), column, err_msg=name)


def test_the_written_text_is_the_documented_form(tmp_path):
    rows = [
        _row("12.000001999", "probe", 1, 7, ack_seq=100, snd_una=90, cwnd=10, srtt_us=50),
        _row("12.000002000", "probe", 1, 7, ack_seq=100, snd_una=90, cwnd=10, srtt_us=50),
        _row("12.000011000", "probe", 2, 8, ack_seq=5, snd_una=5, rtt_us=44, cwnd=10, srtt_us=44),
        _row("12.000021000", "state", 1, 7, ca_state=0, arg=3),
        _row("12.000021000", "rtx", 1, 7),
        _row("12.000031000", "probe", 1, 7, ack_seq=130, snd_una=90, rtt_us=60, cwnd=10),
    ]
    _write(tmp_path / "p.csv", rows, "#lost=4\n")
    events, meta = compact.read_probe(tmp_path / "p.csv")
    assert meta["lost_events"] == 4
    text = compact.encode(events, {}).decode().splitlines()
    assert text[0] == "#cczoo-klog 1"
    assert text[2] == "#columns dt_us,sf,ack,rtt_us,cwnd,srtt_us"
    assert text[3:] == [
        "0,1,10,,10,50",
        "10,2,,44,10,",
        "10,S,1,0,3",
        "0,R,1",
        "10,1,30,60,,",
    ]


def test_logs_of_several_connections_or_none_are_refused(tmp_path):
    rows, _ = _random_rows(1, 20)
    _write(tmp_path / "two.csv", [*rows, dict(rows[0], token="ffffffff")])
    with pytest.raises(UserError, match="2 connections"):
        compact.read_probe(tmp_path / "two.csv")
    _write(tmp_path / "none.csv", [])
    with pytest.raises(UserError, match="no rows"):
        compact.read_probe(tmp_path / "none.csv")


def test_what_is_not_a_compact_log_is_refused(tmp_path):
    path = tmp_path / "x.klog.zst"
    path.write_bytes(b"plain")
    with pytest.raises(UserError, match="not a compact"):
        compact.expand(path)
    path.write_bytes(zstd.compress(b"a\nb\nc\n"))
    with pytest.raises(UserError, match="first line"):
        compact.expand(path)
