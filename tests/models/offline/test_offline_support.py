"""What logs cover is counted in units, and what they don't cover is told in words."""

from dataclasses import replace

import numpy as np
import pytest
from offline_tables import runs

from data.errors import UserError
from features import tcco
from models.offline import regions
from models.offline.held import Held
from models.offline.questions import Question
from models.offline.regions import AXES, SHAPE
from models.offline.support import Support


def at(run, **observed):
    """The run, in places of its own."""
    seen = run.observation.copy()
    for name, value in observed.items():
        seen[..., getattr(tcco, name)] = value
    return replace(run, observation=seen)


@pytest.fixture(scope="module")
def support():
    """Small windows on short paths, and on long ones, and large windows on short ones alone."""
    first, second, third = runs(3)
    made = [
        at(first, CWND=20, BASE_RTT=2e4),
        at(second, CWND=20, BASE_RTT=2e5, RTT=6e5),
        at(third, CWND=400, BASE_RTT=2e4),
    ]
    texts = ("snd_cwnd > 200 and base_rtt_ms > 100", "base_rtt_ms > 100", "snd_cwnd <= 200")
    return Support.of(made, 5, map(Question.read, texts))


def test_counts_by_range(support):
    windows = {row["region"]: row for row in support.table((0,))}
    assert windows["with 10 to 50 segments"]["decisions"] == 160
    assert windows["with 10 to 50 segments"]["runs"] == 2
    assert windows["with 10 to 50 segments"]["behaviours"] == {"bold": 80, "careful": 80}
    assert sum(windows["with 200 to 1000 segments"]["actions"]) == 80
    assert windows["above 1000 segments"]["decisions"] == 0
    pairs = {row["region"]: row["decisions"] for row in support.table((0, 1))}
    assert pairs["with 10 to 50 segments on paths of 100 to 300 ms"] == 80
    assert sum(pairs.values()) == 240
    assert [row["decisions"] for row in support.regions()] == [80, 80, 80]
    gaps = support.gaps()
    assert "with 200 to 1000 segments on paths of 100 to 300 ms" in gaps
    assert "above 1000 segments" in gaps
    assert not any(gap.startswith("above 1000 segments on") for gap in gaps)


def test_an_edge_belongs_to_the_range_below(support):
    seen = np.array([[[1e8, 2e4, 200, 1e8, 2e4, 0], [1e8, 2e4, 201, 1e8, 2e4, 0]]], np.float32)
    windows = np.unravel_index(regions.places(seen), SHAPE)[0]
    assert windows.tolist() == [[2, 3]]
    assert AXES[0].range(2) == (50, 200)


def test_a_question_without_support_is_refused_in_a_sentence(support):
    both, long, small = support.questions
    lacking = "the logs hold no decision above 200 segments on paths beyond 100 ms"
    assert support.lack(both, 100) == lacking
    assert support.lack(long, 50) is None
    assert support.lack(long, 100) == (
        "the logs hold only 80 decisions (of 1 run) on paths beyond 100 ms: a conclusion takes 100"
    )
    assert support.lack(small, 160) is None


@pytest.mark.parametrize(("text", "hint"), [
    ("snd_cwnd >", "are understood"), ("cwnd > 3", "snd_cwnd"), ("", "are understood"),
])  # fmt: skip
def test_a_question_that_is_none_is_a_users_mistake(text, hint):
    with pytest.raises(UserError, match=hint):
        Question.read(text)


def test_decisions_are_held_against_the_logs(support):
    (run,) = runs(1, seed=5)
    held = Held(support, 20)
    outside = at(run, CWND=400, BASE_RTT=2e5, RTT=6e5)
    held.add(outside.observation, outside.action)
    inside = at(run, CWND=20, BASE_RTT=2e4)
    region = regions.places(inside.observation)[0, 0]
    usual = support.actions[region].argmax()
    held.add(inside.observation, np.full(inside.action.shape, usual))
    found = held.plain()
    assert (found["decisions"], found["outside"]) == (160, 0.5)
    assert found["where"] == "the logs hold no decision above 200 segments on paths beyond 100 ms"
    assert found["rare_action"] == 0.5
    rare = Held(support, 20)
    rare.add(inside.observation, np.zeros(inside.action.shape, int))
    assert rare.plain() == {"decisions": 80, "outside": 0.0, "rare_action": 1.0, "where": None}
