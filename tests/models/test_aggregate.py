"""Aggregates of runs on tasks: known values, an independent implementation, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from models.stats.aggregate import improvement, interval, iqm, profile

RNG = np.random.default_rng(5)


def test_the_interquartile_mean_is_scipys_trimmed_mean() -> None:
    for shape in ((1, 1), (3, 1), (5, 3), (10, 7), (1, 13)):
        scores = RNG.normal(size=shape)
        assert iqm(scores) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))


def test_outliers_leave_the_interquartile_mean_alone() -> None:
    scores = np.array([[1.0], [2.0], [3.0], [4.0]])
    assert iqm(scores) == 2.5
    scores[3] = 1e9
    assert iqm(scores) == 2.5


def test_improvement_is_the_mann_whitney_statistic_of_each_task() -> None:
    x, y = np.round(RNG.normal(0.3, 1, (10, 4)), 1), np.round(RNG.normal(0, 1, (7, 4)), 1)
    pairs = [stats.mannwhitneyu(a, b).statistic / 70 for a, b in zip(x.T, y.T, strict=True)]
    assert improvement(x, y) == pytest.approx(np.mean(pairs))
    assert improvement(x, y) + improvement(y, x) == pytest.approx(1)
    assert improvement(x, x) == 0.5
    with pytest.raises(ValueError, match="4 and 3 tasks"):
        improvement(x, y[:, :3])


def test_tasks_count_alike_in_an_improvement() -> None:
    x, y = np.array([[2.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 1.0]])
    assert improvement(x, y) == 0.5


def test_a_profile_is_the_share_above_each_threshold() -> None:
    scores = np.array([[0.1, 0.9], [0.3, 0.5]])
    assert profile(scores, [0.0, 0.1, 0.4, 0.9]).tolist() == [1.0, 0.75, 0.5, 0.0]
    both = profile(np.stack([scores, scores + 1]), [0.4])
    assert both.tolist() == [[0.5], [1.0]]


def test_runs_are_drawn_within_their_task() -> None:
    """Between tasks all the spread there is: a bootstrap across them would be wide."""
    scores = np.array([[0.0, 1.0, 2.0]]).repeat(5, axis=0)
    low, high = interval(lambda x: x.mean(axis=(-2, -1)), scores)
    assert low == high == 1.0


def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(2)
    truth, inside = 0.0, 0
    for seed in range(300):
        low, high = interval(iqm, rng.normal(size=(20, 3)), resamples=300, seed=seed)
        inside += low <= truth <= high
    assert 0.90 <= inside / 300 <= 0.98


def test_intervals_of_pairs_and_profiles() -> None:
    x, y = RNG.normal(1.0, 1, (12, 2)), RNG.normal(0.0, 1, (9, 2))
    low, high = interval(improvement, x, y, seed=1)
    assert low < improvement(x, y) < high
    assert (low, high) == interval(improvement, x, y, seed=1)
    levels = [-9.0, 0.0, 1.0]
    lows, highs = interval(lambda drawn: profile(drawn, levels), x)
    shares = profile(x, levels)
    assert lows.shape == highs.shape == (3,)
    assert (lows <= shares).all()
    assert (shares <= highs).all()
    assert lows[0] == 1


def test_chunks_of_resamples_are_as_many_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.stats import aggregate

    counts = []
    monkeypatch.setattr(aggregate, "_CHUNK", 700)
    aggregate.interval(lambda x: counts.append(len(x)) or x.mean(axis=(-2, -1)), np.ones((5, 2)))
    assert sum(counts) == 2000
    assert max(counts) == 70


@pytest.mark.parametrize("scores", [[], [1.0, 2.0], np.zeros((0, 3))])
def test_scores_are_runs_on_tasks(scores: object) -> None:
    with pytest.raises(ValueError, match="give some runs"):
        iqm(scores)


def test_sets_of_scores_are_resampled_alike() -> None:
    scores = RNG.normal(size=(3, 8, 2))
    lows, highs = interval(iqm, scores)
    assert lows.shape == highs.shape == (3,)
    for one, low, high in zip(scores, lows, highs, strict=True):
        assert (low, high) == pytest.approx(interval(iqm, one))


def test_runs_that_did_all_tasks_are_drawn_whole() -> None:
    """A run that is good in all tasks: then many tasks are no more evidence than one."""
    scores = np.arange(8.0)[:, None] + np.zeros((8, 30))
    one = interval(iqm, scores[:, :1])
    low, high = interval(iqm, scores, whole=True)
    assert high - low == pytest.approx(one[1] - one[0], rel=0.3)
    apart = interval(iqm, scores)
    assert apart[1] - apart[0] < 0.4 * (high - low)
