"""What the second family promises: no scale, no order, defined values, and it separates."""

from dataclasses import replace

import numpy as np
import pytest

from features.params import SbdParams
from features.smartsbd_plus import FEATURES, compute
from features.windows import Series, windows

NAMES = [f.name for f in FEATURES]


def _windows(made, count=3):
    return windows(*made, SbdParams(min_window_us=1000))[0][:count]


@pytest.mark.parametrize("shared", [True, False])
def test_scale_of_time_does_not_show(connection, shared):
    """All times and RTTs threefold: the same picture in slow motion, the same features."""
    plain = compute(_windows(connection(3, shared)))
    slow = compute(_windows(connection(3, shared, scale=3)))
    assert len(plain) == 3
    np.testing.assert_allclose(slow, plain, atol=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_order_of_subflows_does_not_show(connection, shared):
    row, events = connection(4, shared)
    first = compute(_windows(({**row, "wifi_sport": "40001"}, events)))
    second = compute(_windows(({**row, "wifi_sport": "40002"}, events)))
    np.testing.assert_allclose(second, first, atol=1e-9)


def test_the_base_rtt_does_not_show_where_times_are_the_same(connection):
    """A constant on one path's RTT leaves levels and shapes alone (windows held equal)."""
    window = _windows(connection(5))[0]
    shift = np.array([[0.0], [7_000.0]])
    traces = tuple(
        replace(t, rtt=Series(t.rtt.time_us, t.rtt.value + s))
        for t, s in zip(window.traces, shift[:, 0], strict=True)
    )
    moved = replace(
        window,
        traces=traces,
        rtt_us=window.rtt_us + shift,
        history_rtt_us=window.history_rtt_us + shift,
        min_rtt_us=(window.min_rtt_us[0], window.min_rtt_us[1] + 7_000.0),
    )
    before, after = (dict(zip(NAMES, compute([w])[0], strict=True)) for w in (window, moved))
    for name in NAMES:
        if name.startswith(("Queue_Diff", "Queue_Mean", "Queue_P", "Queue_KS", "Skew", "Var")):
            assert after[name] == pytest.approx(before[name], abs=1e-9), name


def test_constant_series_have_defined_values(connection):
    window = _windows(connection(6))[0]
    still = tuple(
        replace(t, rtt=Series(t.rtt.time_us, np.full(t.rtt.value.size, 90_000.0)))
        for t in window.traces
    )
    flat = replace(
        window,
        traces=still,
        rtt_us=np.full_like(window.rtt_us, 90_000.0),
        history_rtt_us=np.full_like(window.history_rtt_us, 90_000.0),
        congested=np.zeros_like(window.congested),
        min_rtt_us=(90_000.0, 90_000.0),
    )
    values = dict(zip(NAMES, compute([flat])[0], strict=True))
    assert np.isfinite(list(values.values())).all()
    for name in (
        "Queue_Diff",
        "Queue_Mean_LogRatio",
        "Corr",
        "Concordance",
        "Z_DTWD",
        "Var_LogRatio",
    ):
        assert values[name] == 0


def test_one_queue_and_two_queues_look_unlike(connection):
    one = np.concatenate([compute(_windows(connection(seed, True))) for seed in range(4)])
    two = np.concatenate([compute(_windows(connection(seed, False))) for seed in range(4)])
    for name in ("Concordance", "Corr", "Lag_Corr", "InPhase_Low", "Loss_Excess", "Drain_Match"):
        k = NAMES.index(name)
        assert one[:, k].mean() > two[:, k].mean() + 0.3, name
    for name in ("Queue_KS", "Queue_P95_LogRatio", "Z_DTWD", "Queue_DTWD", "Residual"):
        k = NAMES.index(name)
        assert one[:, k].mean() < two[:, k].mean() - 0.1, name
