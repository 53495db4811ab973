"""Tests over connections: right where windows repeat each other."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from models.stats import twosample


def sides(first, second):
    return np.arange(first + second) >= first


def test_distance_is_scipys_where_every_connection_has_one_window():
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(70, 3)), 1)  # ties too
    new = sides(40, 30)
    distance, p = twosample.kolmogorov_smirnov(values, np.arange(70), new, 200, rng)
    for column in range(3):
        expected = ks_2samp(values[~new, column], values[new, column]).statistic
        assert distance[column] == pytest.approx(expected)
    assert ((p > 0) & (p <= 1)).all()


def test_repeated_windows_change_nothing():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(40, 2))
    new = sides(20, 20)
    count = rng.integers(1, 9, 40)
    group = np.repeat(np.arange(40), count)
    one = twosample.kolmogorov_smirnov(values, np.arange(40), new, 300, np.random.default_rng(5))
    many = twosample.kolmogorov_smirnov(values[group], group, new, 300, np.random.default_rng(5))
    np.testing.assert_allclose(one, many)


def test_false_alarms_are_as_rare_as_stated_though_windows_repeat_each_other():
    alarms = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(40), 5)
        values = (rng.normal(size=40)[group] + 0.1 * rng.normal(size=200))[:, None]
        _, p = twosample.kolmogorov_smirnov(values, group, sides(20, 20), 99, rng)
        alarms.append(p[0] <= 0.05)
    # Binomial(200, 0.05): beyond these in less than one of a thousand.
    assert 1 <= sum(alarms) <= 22


def test_a_shift_is_found():
    rng = np.random.default_rng(2)
    values = np.stack([rng.normal(size=80), rng.normal(size=80) + 2 * sides(40, 40)], axis=1)
    distance, p = twosample.kolmogorov_smirnov(values, np.arange(80), sides(40, 40), 300, rng)
    assert distance[1] > 0.5 > distance[0]
    assert p[1] == pytest.approx(1 / 301)


def test_the_classifier_finds_what_no_single_feature_shows():
    rng = np.random.default_rng(4)
    new = sides(60, 60)
    first = rng.normal(size=240)
    group = np.repeat(np.arange(120), 2)
    second = np.where(new[group], first, -first) + 0.2 * rng.normal(size=240)
    found = twosample.classifier_auc(np.stack([first, second], axis=1), group, new, 20, 0)
    assert found["low"] > 0.8
    nothing = twosample.classifier_auc(rng.normal(size=(240, 2)), group, new, 20, 0)
    assert nothing["low"] < 0.5 < nothing["high"]


def test_novel_are_those_beyond_the_reference():
    rng = np.random.default_rng(5)
    new = sides(100, 40)
    values = rng.normal(size=(140, 2))
    group = np.arange(140)
    assert twosample.novel_share(values, group, new) < 0.2
    values[new] += 20
    assert twosample.novel_share(values, group, new) == 1.0
