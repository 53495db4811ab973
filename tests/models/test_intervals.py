import numpy as np
import pytest

from models.stats.intervals import by_connection, over_splits


def test_over_splits_is_wider_than_the_plain_t_interval() -> None:
    from scipy.stats import t

    values = np.array([0.91, 0.93, 0.95, 0.90, 0.94])
    plain = t.ppf(0.975, 4) * values.std(ddof=1) / np.sqrt(5)
    found = over_splits(values, test_share=0.1)
    assert found["mean"] == pytest.approx(values.mean())
    half = (found["high"] - found["low"]) / 2
    assert half == pytest.approx(plain * np.sqrt(1 + 5 / 9))


def test_over_splits_leaves_out_nan_and_knows_nothing_of_nothing() -> None:
    assert over_splits([0.5, np.nan, 0.7], 0.1)["mean"] == pytest.approx(0.6)
    assert over_splits([np.nan], 0.1) == {"mean": None, "low": None, "high": None}
    assert over_splits([0.5], 0.1)["low"] is None


def test_repeating_windows_of_a_connection_buys_no_certainty() -> None:
    rng = np.random.default_rng(0)
    hit = rng.random(60) < 0.8
    single = by_connection(hit, np.arange(60))
    copied = by_connection(np.repeat(hit, 20), np.repeat(np.arange(60), 20))
    naive = by_connection(np.repeat(hit, 20), np.arange(1200))
    width = {k: v["high"] - v["low"] for k, v in
             {"single": single, "copied": copied, "naive": naive}.items()}  # fmt: skip
    assert width["copied"] == pytest.approx(width["single"], rel=0.15)
    assert width["naive"] < width["copied"] / 2


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for i in range(200):
        # Connections differ: the windows of one are hit or missed together.
        per = rng.beta(4, 1, 80)
        hit = rng.random((80, 5)) < per[:, None]
        found = by_connection(hit.ravel(), np.repeat(np.arange(80), 5), resamples=300, seed=i)
        covered += found["low"] <= 0.8 <= found["high"]
    assert 0.88 <= covered / 200 <= 0.99


def test_same_seed_same_interval() -> None:
    hit, group = np.arange(50) % 3 > 0, np.arange(50) // 2
    assert by_connection(hit, group, seed=3) == by_connection(hit, group, seed=3)
