"""The scale-free features in integers: what they promise, and how near floats they are."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features import fixed_numbers as numbers
from features import fixed_plus, smartsbd_plus
from features.fixed_cut import Cut
from features.fixed_plus import BLOCKS, POINTS, Block, View, block, values
from features.params import SbdParams
from features.smartsbd_kernel import FEATURES, PREFIX, Measure, compute, holds, view
from features.windows import windows

NAMES = [f.name.removeprefix(PREFIX) for f in FEATURES]
Q16 = 1 << 16


def _windows(made, count=3):
    return windows(*made, SbdParams(min_window_us=1000))[0][:count]


@given(st.integers(-(1 << 52), 1 << 52), st.integers(1, 1 << 62))
def test_a_quotient_is_the_nearest(numerator, denominator):
    exact = Fraction(numerator, denominator)
    found = numbers.quotient(numerator, denominator)
    if abs(exact) >= 4:
        assert abs(found) == 4 * Q16
    elif denominator < 1 << numbers.QUOTIENT_BITS:
        assert abs(found - exact * Q16) <= Fraction(1, 2)
    else:
        assert abs(found - exact * Q16) < 1
    assert numbers.quotient(-numerator, denominator) == -found
    assert numbers.quotient(numerator, 0) == 0


@given(st.integers(1, (1 << 62) - 1))
def test_a_logarithm_is_rounded_down(value):
    assert 0 <= math.log2(value) * Q16 - numbers.log2(value) < 1.001


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 1 << 20))
def test_a_ratio_has_no_direction(first, second, floor):
    found = numbers.log_ratio(first, second, floor)
    assert found == numbers.log_ratio(second, first, floor)
    raised = [max(value, floor, 1) for value in (first, second)]
    assert found / Q16 == pytest.approx(min(4, abs(math.log(raised[0] / raised[1]))), abs=1e-4)


@st.composite
def _views(draw):
    """Any windows, with any history: constant series, spikes of all 26 bits, never congested."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    high = 1 << draw(st.integers(1, 26))

    def rtts(points):
        rtt_us = rng.integers(1, high, (2, points), endpoint=True)
        if draw(st.booleans()):
            rtt_us[draw(st.integers(0, 1))] = draw(st.integers(1, high))
        return np.minimum(rtt_us, high - 1 or 1)

    points = draw(st.integers(4, 300))
    congested = rng.random((2, points)) < draw(st.sampled_from((0.0, 0.1, 1.0)))
    earlier = [rtts(draw(st.integers(4, POINTS))) for _ in range(draw(st.integers(0, BLOCKS - 1)))]
    rtt_us = rtts(points)
    bases = [np.min([r[i].min() for r in (*earlier, rtt_us)]) for i in (0, 1)]
    smallest = [int(base) for base in bases]
    known = [base + draw(st.integers(0, 1000)) for base in smallest]
    step_q16 = max(1, min(known) * Q16)
    return View(earlier, block(rtt_us, congested, step_q16), tuple(known), tuple(smallest))


@settings(max_examples=150, deadline=None)
@given(_views())
def test_any_window_has_features_within_their_ranges_and_the_same_in_both_orders(given_view):
    found = values(given_view)
    assert list(found) == NAMES
    for feature in FEATURES:
        value = found[feature.name.removeprefix(PREFIX)]
        assert feature.low * feature.scale <= value <= feature.high * feature.scale
    newest = given_view.newest
    other = View(
        [rtt[::-1] for rtt in given_view.history],
        Block(newest.rtt_us[::-1], newest.congested[::-1], newest.step_q16),
        given_view.min_rtt_us[::-1],
        given_view.base_us[::-1],
    )
    assert values(other) == found


@pytest.mark.parametrize("shared", [True, False])
def test_scale_of_time_does_not_show(connection, shared):
    """All times and RTTs fourfold: the same picture in slow motion, the same integers."""
    plain = compute(_windows(connection(3, shared)))
    slow = compute(_windows(connection(3, shared, scale=4)))
    assert len(plain) == 3
    # Interpolated RTTs are whole microseconds in both.
    np.testing.assert_allclose(slow, plain, atol=0.02)


@pytest.mark.parametrize("shared", [True, False])
def test_they_are_near_the_family_in_floats(connection, shared):
    """On windows that aren't thinned only rounding tells the two families apart."""
    found = [w for w in _windows(connection(5, shared)) if w.rtt_us.shape[1] <= POINTS]
    assert found
    theirs = smartsbd_plus.compute(found)
    columns = [[f.name for f in smartsbd_plus.FEATURES].index(name) for name in NAMES]
    apart = np.abs(compute(found) - theirs[:, columns])
    levels = {"Queue_P10_LogRatio", "Queue_P50_LogRatio", "Other_Queue_At_Loss"}
    for name, column in zip(NAMES, apart.T, strict=True):
        # Changes from point to point are mostly rounding where a queue hardly moves.
        fine = name.endswith(("Diff", "High"))
        if name not in levels:
            assert column.max() < (0.3 if fine else 0.05), name


def test_a_window_is_thinned_and_no_congestion_is_lost():
    rtt_us = np.arange(600).reshape(2, 300)
    congested = np.zeros((2, 300), np.bool_)
    congested[0, 4] = True
    thin = block(rtt_us, congested, 100)
    assert thin.rtt_us.shape == (2, 100)
    assert thin.step_q16 == 300
    assert thin.rtt_us[0, :3].tolist() == [0, 3, 6]
    assert np.flatnonzero(thin.congested[0]).tolist() == [1]


def test_a_constant_series_is_like_nothing():
    still = Block(np.full((2, 50), 700), np.zeros((2, 50), np.bool_), 700 * Q16)
    found = values(View([], still, (700, 700), (700, 700)))
    assert found["Other_Queue_At_Loss"] == Q16 // 2
    # Of equal levels each is the highest and the lowest.
    equal = {"Other_Queue_At_Loss", "Full_Overlap", "Drained_Overlap"}
    assert not any(value for name, value in found.items() if name not in equal)


def test_equal_series_are_alike():
    one = np.random.default_rng(1).integers(700, 3000, 60)
    same = Block(np.stack([one, one]), np.zeros((2, 60), np.bool_), 700 * Q16)
    found = values(View([], same, (700, 700), (int(one.min()), int(one.min()))))
    for name in ("Corr", "Concordance", "Lag_Corr", "Corr_Rank", "Full_Overlap", "Long_Corr"):
        assert found[name] == pytest.approx(Q16, abs=2), name
    for name in ("Queue_Diff", "Queue_KS", "Queue_SD_LogRatio", "Long_Queue_P95_LogRatio"):
        assert found[name] == 0


def test_the_history_ends_after_seven_windows(connection):
    window = _windows(connection(5))[0]
    first = view(window)
    series = {"RTT": first.newest.rtt_us, "CState": first.newest.congested.astype(np.int64)}
    cut = Cut(0, (0, 1), first.min_rtt_us, first.base_us, first.newest.step_q16, series)
    measure = Measure(FEATURES)
    rows = [measure(replace(cut, index=index)) for index in range(12)]
    assert len(measure.history) == BLOCKS - 1
    assert rows[8] == rows[9] == rows[11]
    assert rows[0] != rows[8]


def test_only_the_features_as_they_are_defined_now_are_held():
    assert holds(FEATURES[:2])
    assert not holds(())
    assert not holds((replace(FEATURES[0], scale=1000),))
    assert not holds(smartsbd_plus.FEATURES)


def test_sums_keep_within_64_bits():
    """The widest series: every sum that the C has is below 2^63."""
    n, value = BLOCKS * POINTS, 1 << fixed_plus.VALUE_BITS + fixed_plus.MEAN_BITS
    assert n * n * value * value < 1 << 53
    assert (1 << 52) << numbers.ROOT_BITS < 1 << 63
    assert 4 << numbers.QUOTIENT_BITS + 16 <= 1 << 63
