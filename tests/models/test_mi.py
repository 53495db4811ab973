from itertools import pairwise

import numpy as np

from models.sbd.train import ranking

NAMES = ("Thpt_ED", "RTT_ED", "noise", "RTT_SD_Ratio")


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    x = np.stack(
        [
            y + rng.normal(0, 0.2, 600),
            y + rng.normal(0, 0.6, 600),
            rng.normal(0, 1, 600),
            # No difference in the mean, only in the spread: correlation would miss it.
            rng.normal(0, 0.1 + 2 * y, 600),
        ],
        axis=1,
    )
    return x, y


def test_ranking_finds_what_tells_and_what_does_not() -> None:
    ranked = ranking.ranking(*_data(), NAMES, seeds=3)
    assert [row["rank"] for row in ranked] == [1, 2, 3, 4]
    assert ranked[0]["feature"] == "Thpt_ED"
    assert ranked[-1]["feature"] == "noise"
    assert ranked[-1]["mi"] < 0.03
    assert all(row["low"] <= row["mi"] <= row["high"] for row in ranked)
    # A binary label carries at most ln 2.
    assert ranked[0]["mi"] <= np.log(2) + 0.05


def test_same_seed_same_ranking() -> None:
    assert ranking.ranking(*_data(), NAMES, seeds=2) == ranking.ranking(*_data(), NAMES, seeds=2)


def test_subsets_nest_and_leave_throughput_out() -> None:
    ranked = ranking.ranking(*_data(), NAMES, seeds=1)
    subsets = ranking.subsets(ranked, 9)
    assert [len(subset) for subset in subsets] == [1, 2, 3]
    assert all(set(a) < set(b) for a, b in pairwise(subsets))
    assert "Thpt_ED" not in subsets[-1]
