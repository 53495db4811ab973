"""Groups of path conditions: found where there are some, kept as JSON, told from strangers."""

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_score

from data.errors import UserError
from models.sbd.conditions import clusters as conditions
from models.sbd.conditions import medoids
from models.sbd.params import Conditions

pytestmark = pytest.mark.xdist_group("tslearn")

SETTINGS = Conditions(points=8, sample=60, clusters=(2, 5), halves=2, starts=2, iterations=3)
LEVELS_US = ((20_000, 60_000), (80_000, 90_000), (300_000, 310_000))


def made(per_level, seed=0, levels=LEVELS_US):
    """Series around three levels, sawtooth and noise on top; the level of each."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(levels)), per_level)
    phase = rng.uniform(0, 1, truth.size)
    saw = (np.linspace(0, 2, SETTINGS.points)[None, :] + phase[:, None]) % 1
    noise = rng.normal(0, 0.05, (truth.size, SETTINGS.points, 2))
    return np.log2(np.array(levels))[truth][:, None, :] + 0.5 * saw[:, :, None] + noise, truth


@pytest.fixture(scope="module")
def fitted():
    rows, truth = made(30)
    return rows, truth, conditions.fit(rows, SETTINGS, seed=3)


def test_three_levels_are_three_groups_with_the_smallest_rtt_first(fitted):
    rows, truth, clusters = fitted
    found = conditions.assign(clusters, rows)
    assert len(clusters.centres) == 3
    assert adjusted_rand_score(truth, found.nearest) == 1.0
    np.testing.assert_array_equal(found.nearest, truth)
    assert set(found.labels(clusters)) <= {"path-1", "path-2", "path-3", conditions.UNLIKE}
    assert found.inside.mean() > 0.85
    assert sum(clusters.sizes) == clusters.fitted == 60


def test_a_seed_gives_the_same_file(fitted):
    rows, _, clusters = fitted
    assert conditions.dumps(conditions.fit(rows, SETTINGS, 3)) == conditions.dumps(clusters)


def test_new_connections_belong_or_are_unlike_any(fitted):
    *_, clusters = fitted
    fresh, truth = made(10, seed=9)
    found = conditions.assign(clusters, fresh)
    assert (found.nearest == truth).all()
    assert found.inside.mean() > 0.8
    strange, _ = made(5, seed=9, levels=((2_000_000, 1_000),))
    assert conditions.assign(clusters, strange).labels(clusters) == [conditions.UNLIKE] * 5


def test_the_distance_is_tslearns(fitted):
    from tslearn.metrics import cdist_dtw

    rows, _, clusters = fitted
    centres = np.array(clusters.centres)
    expected = cdist_dtw(rows[:5], centres) / np.sqrt(SETTINGS.points)
    np.testing.assert_allclose(conditions.distances(rows[:5], centres), expected, rtol=1e-9)


def test_json_there_and_back(fitted):
    *_, clusters = fitted
    assert conditions.loads(conditions.dumps(clusters), "groups.json") == clusters


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 99}, "format 99"),
        ({"radius": [1.0]}, "don't belong together"),
        ({"centers": []}, "unknown key"),
        ({"centres": "x"}, "centres"),
    ],
)
def test_a_damaged_file_is_refused(fitted, change, says):
    tree = json.loads(conditions.dumps(fitted[2])) | change
    with pytest.raises(UserError, match=says):
        conditions.loads(json.dumps(tree), "groups.json")


def test_no_json_and_foreign_json_are_refused():
    for text in ("{", "[]", "{}"):
        with pytest.raises(UserError, match=r"g\.json"):
            conditions.loads(text, "g.json")


def test_too_few_connections_are_told():
    rows, _ = made(5)
    with pytest.raises(UserError, match=r"15 connections .* need 40"):
        conditions.fit(rows, SETTINGS, 0)


def test_connections_that_are_all_alike_are_told():
    rows = np.repeat(made(1)[0][:1], 60, axis=0)
    with pytest.raises(UserError, match="too alike"):
        conditions.fit(rows, SETTINGS, 0)


def test_medoids_are_rows_and_their_silhouette_prefers_three(fitted):
    rows, truth, _ = fitted
    matrix = np.stack([conditions.distances(rows, one[None])[:, 0] for one in rows])
    rng = np.random.default_rng(0)
    part = medoids.fit(matrix, 3, rng, starts=3)
    assert sorted(truth[part.medoid]) == [0, 1, 2]
    assert part.cost == pytest.approx((matrix[:, part.medoid].min(axis=1) ** 2).sum())
    table = medoids.choices(matrix, SETTINGS, rng)
    row = next(r for r in table if r["k"] == 3)
    assert row["stability"] == 1.0
    assert row["silhouette"] == pytest.approx(
        silhouette_score(matrix, truth, metric="precomputed"), abs=0.05
    )


def test_choice_takes_the_most_groups_within_one_deviation():
    rows = [
        {"k": 2, "silhouette": 0.50, "spread": 0.02},
        {"k": 3, "silhouette": 0.49, "spread": 0.01},
        {"k": 4, "silhouette": 0.40, "spread": 0.30},
    ]
    assert medoids.choose(rows) == 3


def series_of(*subflows, **row):
    events = {
        number: {"rtt_us": (np.array(times), np.array(values))}
        for number, (times, values) in enumerate(subflows, 1)
    }
    return conditions.series(row, events, SETTINGS)


def test_series_are_medians_of_log_rtt_over_the_common_time_smaller_rtt_first():
    seconds = np.arange(0, 10_000_000, 10_000)
    slow, quick = np.full(1000, 65536), np.where(seconds < 5_000_000, 1024, 4096)
    quick[123] = 900_000  # one late ACK
    values, reason = series_of((seconds, slow), (seconds, quick))
    assert reason == ""
    np.testing.assert_allclose(values[:, 1], 16)
    np.testing.assert_allclose(values[:, 0], [10] * 4 + [12] * 4)


def test_wifi_comes_first_where_it_is_known():
    times = np.arange(0, 1_000_000, 10_000)
    ports = [{"subflow": 1, "sport": 7}, {"subflow": 2, "sport": 8}]
    values, _ = series_of(
        (times, np.full(100, 4096)), (times, np.full(100, 1024)), subflows=ports, wifi_sport="7"
    )
    np.testing.assert_allclose(values, [[12, 10]] * 8)


def test_reasons_for_no_series():
    times = np.arange(0, 1000, 10)
    assert series_of((times, times + 1))[1] == "fewer than two subflows"
    assert "no RTT" in series_of((times, times + 1), (times, times * 0))[1]
    assert "never alive" in series_of((times, times + 1), (times + 5000, times + 1))[1]
