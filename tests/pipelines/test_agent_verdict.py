"""A verdict says by numbers what an agent beats: here on made-up ones."""

import numpy as np
import pytest

from pipelines.rl.results import VERDICT
from pipelines.rl.verdict import average, best, verdict
from pipelines.studies.environments.judge import Result

FACTS = {
    "agent": "tcco", "sampler": "mixed_paths", "seeds": [7], "steps": 1000, "cpu_s": 61.4,
    "command": "cczoo train tcco",
    "best_steps": [500], "settings": {"rate": 0.1},
}  # fmt: skip
EPISODES = np.random.default_rng(0).normal(0.0, 5.0, 40)
NOISE = np.random.default_rng(1).normal(0.0, 0.1, 40)


def got(name, kind, returns):
    values = np.asarray(returns, float)
    return Result(name, kind, values, np.full(len(values), 10.0), np.full(len(values), 50.0))


def played(over_constant, over_untrained=1.0):
    """Episodes differ by far more than policies do: only pairs tell these apart."""
    own = EPISODES + 3.0
    return [
        got("random", "random", own - 2.0 + NOISE),
        got("untrained", "untrained", own - over_untrained + NOISE),
        got("50 segments", "constant", own - over_constant + NOISE),
        got("90 segments", "constant", own - 9.0),
        # Better than all in the few episodes that it has played.
        got("70 segments", "constant", own[:10] + 50.0),
        got("track", "script", own + 1.0 + NOISE),
        got("tcco", "agent", own),
    ]


def test_what_is_better_in_each_episode_is_beaten_however_episodes_differ():
    found = VERDICT.parse(verdict(played(0.2), FACTS), "made up")
    assert found.met
    constant = found.over["constant"]
    assert constant.policy == "50 segments"
    assert constant.beaten
    half = 2.0227 * NOISE.std(ddof=1) / 40**0.5
    assert constant.mean == pytest.approx(0.2 - NOISE.mean())
    assert constant.high - constant.low == pytest.approx(2 * half, rel=1e-3)
    assert not found.over["script"].beaten
    own = next(row for row in found.rows if row.kind == "agent")
    assert own.high - own.low > 2.0, "intervals of returns themselves would tell nothing apart"
    assert found.text[0].startswith("tcco on mixed_paths: beats what it has to: ")
    assert "61 CPU seconds, seed 7, 40 test episodes" in found.text[0]
    assert found.text[-1].endswith("worse, which isn't asked")


def test_one_kind_that_is_not_beaten_for_sure_is_enough_to_miss():
    found = VERDICT.parse(verdict(played(NOISE.mean() + 0.001), FACTS), "made up")
    assert not found.met
    assert found.over["random"].beaten
    assert not found.over["constant"].beaten
    assert "does NOT beat all that it has to" in found.text[0]
    assert found.text[3].endswith(": better by less than episodes differ")
    worse = VERDICT.parse(verdict(played(0.2, -0.5), FACTS | {"best_steps": [1000]}), "made up")
    assert not worse.met
    assert worse.text[2].startswith("over its untrained network: -0.5")
    assert worse.text[2].endswith(": worse")
    assert "still getting better at the end" in worse.text[-1]


def test_without_a_kind_that_is_asked_nothing_is_met():
    rows = [row for row in played(0.2) if row.kind != "constant"]
    found = verdict(rows, FACTS)
    assert not found["met"]
    assert found["over"]["constant"] is None
    rows = [row for row in played(0.2) if row.kind != "script"]
    assert verdict(rows, FACTS)["met"]


def test_seeds_count_by_their_mean_in_each_episode():
    seeds = [got("tcco", "agent", [1.0, 2.0]), got("tcco", "agent", [3.0, 6.0])]
    found = average(seeds)
    assert found.returns.tolist() == [2.0, 4.0]
    assert found.name == "tcco (2 seeds)"
    assert average(seeds[:1]).returns.tolist() == [1.0, 2.0]


def test_with_several_seeds_their_differences_count_too():
    lucky, unlucky = (got("tcco", "agent", EPISODES + 3.0 + luck) for luck in (0.5, -0.5))
    rows = [*played(0.2)[:-1], average([lucky, unlucky])]
    alone = verdict(rows, FACTS)["over"]["constant"]
    several = verdict(rows, FACTS, [lucky, unlucky])["over"]["constant"]
    assert alone["beaten"]
    assert not several["beaten"], "with other luck it would be worse"
    assert several["mean"] == pytest.approx(alone["mean"])


def test_the_best_of_a_kind_has_played_all_episodes():
    assert best(played(0.2), "constant").name == "50 segments"
    assert best(played(0.2), "nothing") is None
