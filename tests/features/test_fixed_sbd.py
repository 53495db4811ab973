"""The integer features: exact where the answer is known, near the floating-point ones elsewhere."""

import math

import numpy as np
import pytest

from export.fixed import limits, to_integers
from features import smartsbd
from features.dtw import dtw
from features.fixed_dtw import cheapest
from features.fixed_sbd import compute, evaluate, quantity
from features.fixed_series import Calls, linear, step, throughput
from features.params import SbdParams
from features.resample import linear as float_linear
from features.resample import smoothed_throughput
from features.resample import step as float_step
from features.windows import windows

PARAMS = SbdParams()
NAMES = [f.name for f in smartsbd.FEATURES]


def made(rows):
    """Calls from (subflow, time_us, rtt_us, ca_state), or with acked bytes as a fifth."""
    rows = [(*row, *[None] * (5 - len(row))) for row in rows]
    subflow, time_us, rtt_us, ca_state, acked = zip(*rows, strict=True)
    return Calls(
        np.array(subflow, np.int64),
        np.array(time_us, np.uint64),
        np.array(rtt_us, np.int64),
        np.array(ca_state, np.int64),
        np.array([a is not None for a in acked]),
        np.array([a or 0 for a in acked], np.uint64),
    )


def steady(rtts_us=(20_000, 40_000), until_us=5_000_000, period_us=10_000, states=(3, 3)):
    """Two subflows of constant RTT, congested from time 0 on."""
    rows = [(k, 0, rtts_us[k], states[k]) for k in (0, 1)]
    for time_us in range(period_us, until_us, period_us):
        rows += [(k, time_us, rtts_us[k], -1) for k in (0, 1)]
    return rows


def values(found, row=0):
    """Features in their own units, by name."""
    scale = [f.scale for f in smartsbd.FEATURES]
    return dict(zip(NAMES, (found.x[row] / scale).tolist(), strict=True))


def test_every_feature_of_the_table_has_a_meaning():
    kinds = [quantity(f).kind for f in smartsbd.FEATURES]
    assert [kinds.count(k) for k in ("ED", "DTWD", "SD_Ratio", "Min_RTT_Ratio")] == [7, 7, 3, 1]
    assert quantity(smartsbd.FEATURES[NAMES.index("RTT_CState_Thpt_ED")]).parts == (
        "RTT", "CState", "Thpt",
    )  # fmt: skip
    for f, high in zip(smartsbd.FEATURES, limits(smartsbd.FEATURES)[1], strict=True):
        assert quantity(f).high == high


@pytest.mark.parametrize("wifi", [0, 1, -1])
def test_constant_series_by_hand(wifi):
    found = evaluate(made(steady()), wifi, PARAMS, smartsbd.FEATURES)
    # 50 x 40 ms long, a point each 20 ms: 100 points, 20 ms apart in each.
    assert found.window.tolist() == [0, 1]
    got = values(found)
    assert got["RTT_ED"] == got["RTT_DTWD"] == pytest.approx(0.2 * math.sqrt(100), abs=2**-17)
    assert got["CState_ED"] == got["CState_DTWD"] == 0
    assert got["Min_RTT_Ratio"] == (0.5 if wifi == 1 else 2.0)
    assert got["RTT_SD_Ratio"] == got["CState_SD_Ratio"] == got["Thpt_SD_Ratio"] == 1.0


def test_the_state_weighs_as_100_ms():
    rows = sorted([*steady((30_000, 30_000)), (1, 700_000, 0, 0)], key=lambda row: row[1])
    got = values(evaluate(made(rows), 0, PARAMS, smartsbd.FEATURES))
    # A window of 1.5 s with a point each 30 ms; the state differs from 700 ms on.
    differing = 50 - math.ceil(700 / 30)
    assert got["CState_ED"] == pytest.approx(math.sqrt(differing), abs=2**-17)
    assert got["CState_SD_Ratio"] == 1024.0
    assert got["RTT_CState_ED"] == got["CState_ED"]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "base_us", [(20_000, 50_000), (33_333, 33_333), (900, 90_000), (150_000, 7)]
)
def test_near_the_floating_point_features(connection, shared, base_us):
    row, events = connection(3, shared=shared, base_us=base_us)
    found, reason = windows(row, events, PARAMS)
    assert reason is None
    exact = smartsbd.compute(found)
    fixed = compute(row, events, PARAMS)
    index = [w.index for w in found]
    assert set(index) <= set(fixed.window.tolist())
    x = fixed.x[np.isin(fixed.window, index)]
    apart = np.abs(x / [f.scale for f in smartsbd.FEATURES] - exact)
    fractional = base_us[1] / base_us[0] > 20
    # Where the grid falls between microseconds a sample may count for another point.
    assert (apart <= (0.02 if fractional else 2e-4) * (exact + 1)).all(), apart.max(axis=0)


def test_windows_are_those_of_the_floating_point_features(connection):
    for seed in range(4):
        row, events = connection(seed)
        found, _ = windows(row, events, PARAMS)
        fixed = compute(row, events, PARAMS)
        assert fixed.window.tolist()[: len(found)] == [w.index for w in found]
        first = NAMES.index("Min_RTT_Ratio")
        ratios = to_integers(smartsbd.compute(found), smartsbd.FEATURES)[:, first]
        np.testing.assert_array_equal(fixed.x[: len(found), first], ratios)


def test_one_subflow_is_enough_to_close_a_window():
    rows = [row for row in steady() if not (row[0] == 1 and row[1] > 1_900_000)]
    found = evaluate(made(rows), -1, PARAMS, smartsbd.FEATURES)
    assert found.window.tolist() == [0]


def test_an_idle_window_is_left_out_and_silence_costs_nothing():
    pause_us = 10**15
    rows = steady() + [(s, t + pause_us, r, -1) for s, t, r, _ in steady()]
    found = evaluate(made(rows), -1, PARAMS, smartsbd.FEATURES)
    # The third window has samples for a second; the fourth is idle for years.
    resumed = pause_us // 2_000_000
    assert found.window.tolist() == [0, 1, 2, resumed, resumed + 1]


def test_no_rtt_before_congestion_means_no_window_ever():
    rows = [(0, 0, 0, 3), (1, 0, 0, 3), *steady()[2:]]
    assert evaluate(made(rows), -1, PARAMS, smartsbd.FEATURES).window.size == 0


def test_a_sample_at_the_start_counts_and_a_later_one_does_not():
    at_start = [(0, 0, 20_000, 3), (1, 0, 40_000, 3), (0, 0, 10_000, -1)]
    later = [(0, 1, 10_000, -1), *steady()[2:]]
    for rows, ratio in (([*at_start, *later], 4.0), ([*at_start[:2], *later], 2.0)):
        got = values(evaluate(made(rows), -1, PARAMS, smartsbd.FEATURES))
        assert got["Min_RTT_Ratio"] == ratio


def test_what_is_not_a_subflow_or_not_in_order_changes_nothing():
    rows = steady()
    meant = evaluate(made(rows), -1, PARAMS, smartsbd.FEATURES)
    odd = []
    for row in rows:
        odd += [row, (7, row[1] + 10**9, 1, 3), (-1, 0, 1, 3)]
    found = evaluate(made(odd), -1, PARAMS, smartsbd.FEATURES)
    np.testing.assert_array_equal(found.x, meant.x)
    back = [(s, t if k % 3 else max(0, t - 5_000_000), r, c) for k, (s, t, r, c) in enumerate(rows)]
    assert (evaluate(made(back), -1, PARAMS, smartsbd.FEATURES).window >= 0).all()


def test_no_calls_and_no_acks():
    nothing = made(steady()).take(np.zeros(len(steady()), np.bool_))
    assert evaluate(nothing, -1, PARAMS, smartsbd.FEATURES).x.shape == (0, 18)
    assert compute({}, {1: {}}, PARAMS).x.shape == (0, 18)


def test_more_points_than_64_bits_hold_are_refused():
    with pytest.raises(ValueError, match="max_points 2000"):
        evaluate(made(steady()), -1, SbdParams(max_points=2000), smartsbd.FEATURES)


def test_series_are_the_floating_point_ones_rounded():
    rng = np.random.default_rng(5)
    for _ in range(50):
        time_us = np.sort(rng.integers(0, 3000, 40))
        value = rng.integers(0, 90_000, 40)
        start, spacing = int(rng.integers(0, 900)), int(rng.integers(1, 40))
        grid_us = start + np.arange(60) * spacing
        exact = float_linear(time_us, value.astype(float), start, spacing, 60)
        assert np.abs(linear((time_us, value), grid_us, 10**9) - exact).max() <= 0.5
        on = (value > 45_000) * 1
        held = float_step(time_us, on.astype(float), start, spacing, 60)
        np.testing.assert_array_equal(step((time_us, on), grid_us), held)


def test_throughput_is_the_floating_point_one_in_units_of_100_bit_s():
    rng = np.random.default_rng(6)
    time_us = np.sort(rng.integers(0, 400_000, 500))
    acked = np.cumsum(rng.integers(-200, 3000, 500)).clip(0)
    times, exact = smoothed_throughput(time_us, acked, 0.125)
    found = throughput(time_us, acked, 1 << 13)
    np.testing.assert_array_equal(found[0], times)
    low = exact < 6.7e9
    assert low.sum() > 20
    assert np.abs(found[1] - exact / 100)[low].max() <= 2


def test_warping_is_that_of_features_dtw():
    rng = np.random.default_rng(7)
    for dims in (1, 2, 3):
        a, b = rng.integers(0, 1 << 26, (2, 70, dims))
        assert math.sqrt(int(cheapest(a, b))) == pytest.approx(dtw(a, b), rel=1e-12)


def test_the_longest_path_of_the_largest_values_keeps_within_64_bits():
    top = (1 << 26) - 1
    a = np.tile([0, 0, 0], (1024, 1))
    b = np.tile([top, 100_000, top], (1024, 1))
    assert int(cheapest(a, b)) == 1024 * (2 * top**2 + 10**10)
    assert 2047 * (2 * top**2 + 10**10) < 2**64
