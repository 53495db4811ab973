import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from features.resample import linear, smoothed_throughput, step

TIMES = st.lists(st.integers(0, 2000), min_size=1, max_size=30, unique=True).map(sorted)


@given(TIMES, st.integers(-100, 2100), st.floats(0.5, 90), st.integers(1, 60))
def test_linear_is_numpys_interpolation(times, start, width, points):
    time_us = np.array(times, np.int64)
    value = np.sin(time_us / 50.0)
    expected = np.interp(start + width * np.arange(points), time_us, value)
    np.testing.assert_allclose(linear(time_us, value, start, width, points), expected, atol=1e-9)


def test_of_samples_at_one_time_the_last_counts():
    time_us, value = np.array([0, 10, 10, 20]), np.array([0.0, 5.0, 7.0, 9.0])
    assert linear(time_us, value, 10, 5.0, 3).tolist() == [7.0, 8.0, 9.0]
    assert np.isnan(linear(time_us[:0], value[:0], 0, 1.0, 2)).all()


def test_step_holds_the_last_change_and_begins_open():
    time_us, value = np.array([10, 20, 30]), np.array([1.0, 0.0, 1.0])
    assert step(time_us, value, 0, 5.0, 8).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert step(time_us[:0], value[:0], 0, 5.0, 2).tolist() == [0, 0]


def test_throughput_by_hand():
    # 1000 bytes in 1 ms are 8 Mbit/s, 3000 in 1 ms 24; the EWMA goes a quarter of the way.
    time_us = np.array([0, 1000, 1500, 2000, 2000, 3000])
    ack = np.array([0, 1000, 1000, 3000, 4000, 4000])
    times, rates = smoothed_throughput(time_us, ack, 0.25)
    assert times.tolist() == [1000, 2000]
    assert rates.tolist() == [8e6, 8e6 + 0.25 * (24e6 - 8e6)]


def test_throughput_without_progress_is_empty():
    for n in (0, 1, 3):
        times, rates = smoothed_throughput(np.arange(n), np.full(n, 7), 0.125)
        assert times.size == rates.size == 0
