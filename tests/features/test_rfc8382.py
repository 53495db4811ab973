import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from features.rfc8382 import summary_statistics
from features.similarity import (
    best_lag,
    coincidence,
    concordance,
    correlation,
    ks_distance,
    nearest_gap,
    ranks,
)


def test_by_hand():
    """Four intervals of 10 us with means 2, 4, 2, 4 and two samples each."""
    time_us = np.array([0, 5, 10, 15, 20, 25, 30, 35])
    delay = np.array([1.0, 3.0, 3.0, 5.0, 1.0, 3.0, 3.0, 5.0])
    loss_us = np.array([12, 31, 32])
    skew, var, freq, loss = summary_statistics(time_us, delay, loss_us, 0, 40, 10, m=2, n=4)
    # Against the means 2 (its own), 2, 3, 3 before each: below less above is 0, -2, 1, -1.
    assert skew.tolist() == [0.0, -0.5, -0.25, 0.0]
    # |delay - former mean| sums 2, 4, 4, 4 over two samples, two intervals at a time.
    assert var.tolist() == [1.0, 1.5, 2.0, 2.0]
    # Mean 3 of the last two, reach 0.7 * var >= 1.05 > |2 - 3|: nothing is significant.
    assert freq.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert loss.tolist() == [0.0, 1 / 5, 1 / 7, 3 / 11]
    freq = summary_statistics(time_us, delay, loss_us, 0, 40, 10, m=2, n=4, p_v=0.1)[2]
    assert freq.tolist() == [0.0, 0.0, 1 / 3, 2 / 4]


def test_packets_weigh_the_loss():
    time_us, delay = np.array([1, 2]), np.array([1.0, 1.0])
    loss = summary_statistics(
        time_us, delay, np.array([3]), 0, 10, 10, packets=np.array([2.0, 2.0])
    )
    assert loss[3].tolist() == [1 / 5]


def test_without_samples_all_is_zero():
    empty = np.empty(0, np.int64)
    for estimate in summary_statistics(empty, np.empty(0), empty, 0, 1000, 100):
        assert estimate.tolist() == [0.0] * 10


@given(st.integers(0, 2**32), st.integers(3, 60))
def test_correlations_agree_with_numpy(seed, n):
    x, y = np.random.default_rng(seed).normal(size=(2, n))
    assert np.isclose(correlation(x, y), np.corrcoef(x, y)[0, 1])
    assert abs(concordance(x, y)) <= abs(correlation(x, y)) + 1e-12
    assert np.isclose(concordance(x, x), 1)
    assert correlation(x, np.ones(n)) == concordance(np.ones(n), np.ones(n)) == 0


def test_best_lag_finds_the_shift():
    x = np.random.default_rng(0).normal(size=100)
    value, lag = best_lag(x[5:], x[:-5], 8, False)
    assert lag == 5
    assert np.isclose(value, 1)


def test_coincidence_beyond_chance():
    first = np.arange(0, 1_000_000, 100_000)
    share, excess = coincidence(first, first + 1_000, 5_000, 1_000_000.0)
    assert share == 1
    assert np.isclose(excess, np.exp(-0.1))
    assert coincidence(first, first + 50_000, 5_000, 1e6)[0] == 0
    assert coincidence(first, first[:0], 5_000, 1e6) == (0, 0)


def test_small_statistics():
    assert ranks(np.array([3.0, 1.0, 3.0, 9.0])).tolist() == [0.5, 0.0, 0.5, 1.0]
    assert ks_distance(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 1
    assert ks_distance(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == 0
    assert nearest_gap(np.array([5, 50]), np.array([0, 40, 60])).tolist() == [5, 10]
    assert nearest_gap(np.array([5]), np.empty(0, np.int64)).tolist() == [np.inf]
