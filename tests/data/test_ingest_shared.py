"""Real logs and traces, where the machine has them: counts, and figures known of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.ingest import Settings, ingest
from data.store import iter_connections

SHARED = Path(__file__).parents[3] / "shared"
pytestmark = pytest.mark.skipif(
    not SHARED.is_dir(), reason="extra check on real logs: no directory 'shared' beside the project"
)


def sender(path: Path, out: Path) -> dict:  # type: ignore[type-arg]
    """Series of the connection with most events."""
    ingest([path], out, settings=Settings(jobs=1))
    return max(
        (series for _, series in iter_connections(out)),
        key=lambda series: sum(len(t) for v in series.values() for t, _ in v.values()),
    )


def test_ftrace_and_probe_of_one_run_tell_the_same(tmp_path: Path) -> None:
    probe = sender(SHARED / "kernel-logs/klog_nsb_cubic.csv.gz", tmp_path / "probe")
    trace = sender(SHARED / "kernel-logs/ftrace_nsb_cubic.txt.gz", tmp_path / "trace")
    for subflow in (1, 2):
        ours, theirs = probe[subflow], trace[subflow]
        assert np.array_equal(ours["ca_state"][1], theirs["ca_state"][1])
        assert np.abs(ours["ca_state"][0] - theirs["ca_state"][0]).max() < 1000
        assert np.array_equal(ours["snd_cwnd"][1], theirs["snd_cwnd"][1])
        # The trace learns of an ACK from the next line: all but the last one.
        n = len(theirs["ack"][1])
        assert len(ours["ack"][1]) - n <= 1
        assert np.array_equal(ours["ack"][1][:n], theirs["ack"][1])
        assert np.abs(ours["ack"][0][:n] - theirs["ack"][0]).max() < 1000
        # The smoothed RTT follows the raw one.
        raw = np.interp(theirs["srtt_us"][0], *ours["rtt_us"])
        assert np.corrcoef(raw, theirs["srtt_us"][1])[0, 1] > 0.95


@pytest.mark.parametrize(
    ("name", "mean_mbps", "seconds"),
    [
        ("mahimahi-att-verizon/ATT-LTE-driving.down", 5.17, 786),
        ("mahimahi-att-verizon/Verizon-EVDO-driving.up", 0.84, 1065),
        ("nyc-4g-c2tcp/downlink-4g-with-cross-times", 6.46, 929),
    ],
)
def test_mean_rate_of_mahimahi_traces(
    name: str, mean_mbps: float, seconds: int, tmp_path: Path
) -> None:
    time_us, rate = sender(SHARED / "traces" / name, tmp_path / "out")[1]["capacity_bps"]
    end_us = seconds * 1e6
    mean = (rate * np.diff(np.append(time_us, end_us))).sum() / end_us
    assert mean / 1e6 == pytest.approx(mean_mbps, rel=0.02)


def test_iperf3_rate_and_window(tmp_path: Path) -> None:
    down = SHARED / "traces/starlink-victoria-seattle"
    series = sender(next(down.glob("downlink*.json.gz")), tmp_path / "down")[1]
    assert series["throughput_bps"][1].mean() / 1e6 == pytest.approx(33.3, rel=0.01)
    series = sender(next(down.glob("uplink*.json.gz")), tmp_path / "up")[1]
    assert series["throughput_bps"][1].mean() / 1e6 == pytest.approx(6.75, rel=0.02)
    assert series["retransmit"][1].sum() == 625
    assert round(series["srtt_us"][1].min() / 1000) == 33


def test_nothing_of_the_real_logs_is_lost_or_misread(tmp_path: Path) -> None:
    report = ingest([SHARED / "kernel-logs"], tmp_path / "out", settings=Settings(jobs=1))
    known = {"probe-csv": 4, "ftrace": 2, "ss": 1, "mpinfo": 1, "unrecognised": 2}
    assert report["formats"] == known
    # Only the README and the emulator's log aren't kernel logs.
    assert report["quarantined_lines"] == 6402 + 6
    assert report["backwards_lines"] == 0
