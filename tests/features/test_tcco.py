"""Observations of TCCO's agent: hand-made intervals, and a kernel's log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.ingest import Settings, ingest
from data.store import iter_connections
from features import tcco
from features.intervals import batches, observations, scaled

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def batch(**values: list[int]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {k: (np.arange(len(v)), np.array(v, np.int64)) for k, v in values.items()}


def test_one_interval_and_one_without_any_event() -> None:
    observer = tcco.SubflowObserver(tcco.TccoObservation(peak_intervals=1))
    first = observer.update(batch(ack=[1000, 50_000], rtt_us=[8000, 10_000], snd_cwnd=[9, 12]))
    assert first.tolist() == [2e7, 9000, 12, 2e7, 8000, 0]
    empty = observer.update({})
    assert empty.tolist() == [0, 9000, 12, 2e7, 8000, 0]


def test_delivered_data_counts_where_it_is_known() -> None:
    observer = tcco.SubflowObserver(tcco.TccoObservation())
    assert observer.update(batch(ack=[0], delivered_bytes=[25_000]))[tcco.THROUGHPUT] == 1e7
    assert observer.update(batch(ack=[50_000], delivered_bytes=[50_000]))[tcco.THROUGHPUT] == 1e7


def test_the_expflag_rises_in_the_sixth_interval_and_falls_with_growth() -> None:
    observer = tcco.SubflowObserver(tcco.TccoObservation())
    windows = [10, 10, 9, 9, 9, 9, 9, 9, 10, 10]
    flags = [observer.update(batch(snd_cwnd=[w]))[tcco.EXPFLAG] for w in windows]
    assert flags == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]


def test_estimates_are_forgotten_after_their_lifetime() -> None:
    observer = tcco.SubflowObserver(tcco.TccoObservation(lifetime_us=100_000, peak_intervals=1))
    observer.update(batch(rtt_us=[5000], ack=[100_000]))
    rest = [observer.update(batch(rtt_us=[9000], ack=[100_000 + 10_000 * k])) for k in range(1, 7)]
    assert [r[tcco.BASE_RTT] for r in rest] == [5000] * 4 + [9000] * 2
    assert [r[tcco.BOTTLENECK] for r in rest] == [4e7] * 4 + [4e6] * 2


def test_bursts_of_acks_are_no_peak() -> None:
    observer = tcco.SubflowObserver(tcco.TccoObservation(peak_intervals=4))
    acks = [0, 0, 0, 40_000, 40_000, 40_000, 40_000, 80_000]
    seen = [observer.update(batch(ack=[a]))[tcco.BOTTLENECK] for a in acks]
    assert seen[-1] == 4e6


def test_a_kernels_log_is_read_by_the_same_function(tmp_path: Path) -> None:
    ingest([GOLDEN / "klog.klog"], tmp_path, settings=Settings(jobs=1))
    [(_, events)] = list(iter_connections(tmp_path))
    for variables in events.values():
        first = min(int(times[0]) for times, _ in variables.values())
        last = max(int(times[-1]) for times, _ in variables.values())
        count = (last - first) // 20_000 + 1
        observer = tcco.SubflowObserver(tcco.TccoObservation())
        seen = observations(observer, variables, first, 20_000, count)
        assert seen.shape == (count, 6)
        assert seen[:, tcco.THROUGHPUT].sum() * 20_000 / 8e6 == variables["ack"][1][-1]
        assert seen[-1, tcco.CWND] == variables["snd_cwnd"][1][-1]
        assert seen[-1, tcco.BASE_RTT] == variables["rtt_us"][1].min()


def test_intervals_hold_every_event_once_and_not_their_end() -> None:
    times = np.array([0, 10, 19, 20, 40, 59], np.int64)
    cut = list(batches({"ack": (times, times)}, 0, 20, 3))
    assert [b["ack"][0].tolist() for b in cut] == [[0, 10, 19], [20], [40, 59]]
    assert list(batches({"ack": (times, times)}, 60, 20, 1)) == [{}]


def test_scaled_values_lie_between_0_and_1_and_keep_their_order() -> None:
    values = np.array([tcco.HALF, [0.0] * 6, [1e12] * 6, [2 * h for h in tcco.HALF]])
    result = scaled(values, tcco.FEATURES, tcco.HALF)
    assert result.dtype == np.float32
    assert result[0].tolist() == [0.5] * 5 + [0.0]
    assert result[1].tolist() == [0.0] * 6
    assert ((result[2] > 0.98) & (result[2] <= 1.0)).all()
    assert result[3, :5] == pytest.approx([2 / 3] * 5)
