"""The features that :mod:`features.smartsbd_plus` names are computed on one window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from features import similarity as sim
from features.arrays import Float, Int
from features.dtw import dtw
from features.rfc8382 import summary_statistics
from features.windows import Series, Trace, Window

LOW_PASS_RTTS = 6
"""Width of the moving average that splits slow from fast, in larger min RTTs."""
BAND_SHARE = 0.1
"""Half-width of the DTW band, as a share of the window."""
INTERVALS = 12
"""RFC 8382 base intervals per window: the RFC's 350 ms would leave two in a short window."""
FLOOR_SHARE = 0.02
"""Spreads and levels below this share of the larger subflow's mean queue count as that much."""


def values(window: Window) -> dict[str, float]:
    """All features of one window, by name, as they are before they are clipped."""
    long_queues, samples = _queues(window)
    queues = long_queues[:, -window.rtt_us.shape[1] :]
    # Both subflows in units of their common mean queueing delay (one microsecond at least).
    queues = queues / max(float(queues.mean()), 1.0)
    return {
        **_levels(queues),
        **_trends(window, queues),
        **_losses(window, queues),
        **_history(window, long_queues),
        **_rfc8382(window, samples),
    }


def _queues(window: Window) -> tuple[Float, list[Series]]:
    """Queueing delays, on the grid and as samples: RTT less the smallest up to the window's end."""
    samples = []
    base_us = []
    for trace, known_us in zip(window.traces, window.min_rtt_us, strict=True):
        base_us.append(min(known_us, float(trace.rtt.value.min())))
        samples.append(Series(trace.rtt.time_us, trace.rtt.value - base_us[-1]))
    return np.maximum(window.history_rtt_us - np.array(base_us)[:, None], 0.0), samples


def _levels(queues: Float) -> dict[str, float]:
    first, second = queues
    low, mid, high = np.percentile(queues, (10, 50, 95), axis=1)
    mean = queues.mean(axis=1)
    floor = FLOOR_SHARE * float(mean.max())
    return {
        "Queue_Diff": abs(mean[0] - mean[1]) / max(mean.mean(), floor, 1e-9),
        "Queue_Abs_Diff": float(np.abs(first - second).mean()) / max(mean.mean(), 1e-9),
        "Queue_Mean_LogRatio": sim.log_ratio(mean[0], mean[1], floor=floor),
        "Queue_SD_LogRatio": sim.log_ratio(first.std(), second.std(), floor=floor),
        "Queue_P10_LogRatio": sim.log_ratio(low[0], low[1], floor=floor),
        "Queue_P50_LogRatio": sim.log_ratio(mid[0], mid[1], floor=floor),
        "Queue_P95_LogRatio": sim.log_ratio(high[0], high[1], floor=floor),
        "Queue_KS": sim.ks_distance(first, second),
    }


def _trends(window: Window, queues: Float) -> dict[str, float]:
    first, second = queues
    points = first.size
    larger, lags, width = _widths(window, points)
    change = min(max(1, round(larger)), points // 4)
    slow = [sim.moving_average(q, width) for q in queues]
    fast = [q - s for q, s in zip(queues, slow, strict=True)]
    changes = [q[change:] - q[:-change] for q in queues]
    coherence_low, phase_low = sim.band_coherence(first, second, 0.0, 1 / (16 * larger))
    coherence_mid, phase_mid = sim.band_coherence(
        first, second, 1 / (16 * larger), 1 / (4 * larger)
    )
    lag_corr, lag = sim.best_lag(first, second, lags, False)
    early, late = (first, second) if lag >= 0 else (second, first)
    shift = abs(lag)
    early, late = early[: points - shift], late[shift:]
    spread = float(early.var() + late.var())
    band = max(2, round(BAND_SHARE * points))
    normal = [(q - q.mean()) / max(float(q.std()), 1e-9) for q in queues]
    root = np.sqrt(points)
    full = [sim.ranks(q) >= 0.8 for q in queues]
    drained = [sim.ranks(q) <= 0.2 for q in queues]
    span_us = float(window.end_us - window.start_us)
    drains = [_drains(q, window) for q in slow]
    reach_us = max(window.min_rtt_us) * 2
    return {
        "Corr": sim.correlation(first, second),
        "Corr_Rank": sim.correlation(sim.ranks(first), sim.ranks(second)),
        "Corr_Low": sim.correlation(slow[0], slow[1]),
        "Corr_High": sim.correlation(fast[0], fast[1]),
        "Corr_Diff": sim.correlation(changes[0], changes[1]),
        "Lag_Corr": lag_corr,
        "Lag_Corr_High": sim.best_lag(fast[0], fast[1], lags, False)[0],
        "Lag_Corr_Diff": sim.best_lag(changes[0], changes[1], lags, False)[0],
        "Concordance": sim.concordance(first, second),
        "Lag_Concordance": sim.best_lag(first, second, lags, True)[0],
        "Coherence_Low": coherence_low,
        "InPhase_Low": phase_low,
        "Coherence_Mid": coherence_mid,
        "InPhase_Mid": phase_mid,
        "Z_DTWD": dtw(normal[0], normal[1], band) / root,
        "Queue_DTWD": dtw(first, second, band) / root,
        "Residual": float((early - late).var()) / (2 * spread) if spread > 1e-9 else 0.0,
        "Full_Overlap": sim.overlap(full[0], full[1]),
        "Drained_Overlap": sim.overlap(drained[0], drained[1]),
        "Drain_Match": sim.coincidence(drains[0], drains[1], reach_us, span_us)[1],
    }


def _history(window: Window, queues: Float) -> dict[str, float]:
    """Features over earlier windows too: slow queues need several of their own periods."""
    first, second = queues / max(float(queues.mean()), 1.0)
    _, lags, width = _widths(window, first.size)
    slow = [sim.moving_average(q, width) for q in (first, second)]
    mid, high = np.percentile((first, second), (50, 95), axis=1)
    floor = FLOOR_SHARE * float(max(first.mean(), second.mean()))
    return {
        "Long_Concordance": sim.best_lag(first, second, lags, True)[0],
        "Long_Corr": sim.correlation(first, second),
        "Long_Corr_High": sim.correlation(first - slow[0], second - slow[1]),
        "Long_Queue_KS": sim.ks_distance(first, second),
        "Long_Queue_P50_LogRatio": sim.log_ratio(mid[0], mid[1], floor=floor),
        "Long_Queue_P95_LogRatio": sim.log_ratio(high[0], high[1], floor=floor),
    }


def _widths(window: Window, points: int) -> tuple[float, int, int]:
    """In grid points: the larger min RTT, the lags searched, the width of the moving average."""
    smaller, larger = sorted(rtt / window.step_us for rtt in window.min_rtt_us)
    lags = min(max(1, round(larger - smaller)), points // 8)
    width = min(max(3, round(LOW_PASS_RTTS * larger)), points // 2)
    return larger, lags, width


def _drains(queue: Float, window: Window) -> Int:
    """Times at which the smoothed queue falls through its median, having been in its top third."""
    rank = sim.ranks(queue)
    times = []
    was_full = False
    for k, value in enumerate(rank):
        if value >= 2 / 3:
            was_full = True
        elif value < 0.5 and was_full:
            times.append(window.start_us + k * window.step_us)
            was_full = False
    return np.array(times, np.int64)


def _losses(window: Window, queues: Float) -> dict[str, float]:
    span_us = float(window.end_us - window.start_us)
    # A drop shows one round trip later, by then through a queue that may be full.
    reach_us = 1.5 * max(float(np.percentile(trace.rtt.value, 75)) for trace in window.traces)
    episodes = [_episodes(trace, window) for trace in window.traces]
    bursts = [_bursts(trace.retransmit_us, reach_us) for trace in window.traces]
    share, excess = sim.coincidence(episodes[0], episodes[1], reach_us, span_us)
    congested = window.congested > 0
    ranked = [sim.ranks(q) for q in queues]
    found = [
        ranked[1 - side][_grid_point(window, int(time_us))]
        for side in (0, 1)
        for time_us in episodes[side]
    ]
    return {
        "Loss_Match": share,
        "Loss_Excess": excess,
        "Rtx_Excess": sim.coincidence(bursts[0], bursts[1], reach_us, span_us)[1],
        "Congested_Overlap": sim.overlap(congested[0], congested[1]),
        "Congested_Corr": sim.correlation(window.congested[0], window.congested[1]),
        "Other_Queue_At_Loss": float(np.mean(found)) if found else 0.5,
    }


def _episodes(trace: Trace, window: Window) -> Int:
    """Times within the window at which the subflow turns congested."""
    state = np.concatenate([[0.0], trace.congested.value])
    begins = trace.congested.time_us[(np.diff(state) > 0)]
    return np.asarray(begins[begins >= window.start_us], np.int64)


def _bursts(times_us: Int, gap_us: float) -> Int:
    """First of each group of retransmissions that lie less than ``gap_us`` apart."""
    if times_us.size == 0:
        return times_us
    first = np.concatenate([[True], np.diff(times_us) > gap_us])
    return np.asarray(times_us[first], np.int64)


def _grid_point(window: Window, time_us: int) -> int:
    point = int((time_us - window.start_us) / window.step_us)
    return min(max(point, 0), int(window.rtt_us.shape[1]) - 1)


def _rfc8382(window: Window, samples: Sequence[Series]) -> dict[str, float]:
    interval_us = (window.end_us - window.start_us) / INTERVALS
    skew, var, freq, loss = (
        np.array(column)
        for column in zip(
            *(
                [
                    float(estimate[-1])
                    for estimate in summary_statistics(
                        series.time_us,
                        series.value,
                        trace.retransmit_us,
                        window.start_us,
                        window.end_us + 1,
                        interval_us,
                    )
                ]
                for series, trace in zip(samples, window.traces, strict=True)
            ),
            strict=True,
        )
    )
    mean_us = np.mean([series.value.mean() for series in samples])
    return {
        "Skew_Diff": abs(skew[0] - skew[1]),
        "Var_LogRatio": sim.log_ratio(var[0], var[1], floor=FLOOR_SHARE * float(mean_us)),
        "Freq_Diff": abs(freq[0] - freq[1]),
        "Loss_Diff": 2 * abs(loss[0] - loss[1]) / loss.sum() if loss.sum() > 0 else 0.0,
    }
