"""Trees that are searched for by their return: one steers windows, one turns k."""

from dataclasses import replace

import numpy as np
import pytest
import random_policies

from data.errors import UserError
from export.policy.student import described
from export.proof import prove
from export.source import source_of
from models import store
from models.distill import by_return, judge
from models.distill.params import Distill
from models.distill.rollout import Task
from models.distill.search import SIZES, distil
from pipelines.distill import _beside

SMALL = Distill(rounds=1, lanes=2, steps=12, seeds=2, episodes=1, steered=2, views=("present",))


@pytest.fixture(scope="module")
def task():
    teacher = random_policies.policy("tcco")
    return Task(teacher, teacher)


@pytest.fixture(scope="module")
def found(task):
    return distil(task, SMALL)


def plain(share):
    """A steering that knows of no kinds of paths."""
    return np.array([share, share, share, 0.0, 0.0, 0.7, 0.0, 2.0, -1.0])


def test_with_one_share_it_tracks(task):
    """It goes to where the nearest number of steps leads, as the tracking script does."""
    names = [feature.name for feature in task.deriver(1).features]
    rng = np.random.default_rng(1)
    row = rng.integers(0, 1 << 20, (5000, len(names)))
    row[:, names.index("cwnd_over_held")] = rng.integers(900, 1700, 5000)
    row[:, names.index("expflag")] = rng.integers(0, 2, 5000)
    share = row[:, names.index("cwnd_over_held")] / 1024
    delta = np.clip(np.floor((1.25 - share) * 16 + 0.5), -2, 2)
    delta = np.where(row[:, names.index("expflag")] > 0, np.maximum(delta, 1), delta)
    acted = by_return.student(task, plain(1.25)).act(row)
    np.testing.assert_array_equal(acted, delta + 2)


def test_shares_depend_on_the_path(task):
    numbers = plain(1.25)
    numbers[[0, 2]] = 1.8, 0.8
    student = by_return.student(task, numbers)
    assert (student.leaves, student.depth) == (84, 8)
    names = [feature.name for feature in task.deriver(1).features]
    row = np.zeros((3, len(names)), np.int64)
    row[:, names.index("base_rtt_us")] = 5_000, 20_000, 100_000
    row[:, names.index("cwnd_over_held")] = 1.25 * 1024
    row[:, names.index("held_segments")] = 500
    row[:, names.index("rate_over_peak")] = 1000
    assert student.act(row).tolist() == [4, 2, 0]
    # While there is growth to be had nobody stays.
    row[:, names.index("expflag")] = 1
    assert student.act(row).tolist() == [4, 3, 3]


def test_the_search_competes_with_imitations_in_validation(found):
    views = [one.student.view for one in found.tried]
    assert views[:3] == ["present", "steered", "steered"]
    top = max(one.mean for one in found.tried)
    chosen = next(one for one in found.tried if one.student is found.chosen)
    assert chosen.mean >= top - SMALL.tolerance * abs(top)


def test_beside_stand_imitations_of_each_size_that_were_not_searched_for(task, found):
    searched = replace(found, chosen=by_return.student(task, plain(1.25)), sizes={})
    rows = _beside("tcco-tree", task, SMALL, searched, judge.tested(task, None, SMALL))
    titles = [row["student"] for row in rows]
    assert titles[:3] == ["tcco-tree", "plain cloning", "cloning with weights"]
    sizes = [title for title in titles if "leaves at most" in title]
    assert sizes == [f"cloning with weights, {size} leaves at most" for size in SIZES]
    assert all(row["leaves"] != 84 for row in rows[1:] if "leaves" in row)


def test_others_are_not_searched_for():
    team = random_policies.policy("macc")
    with pytest.raises(UserError, match="leave it at 0"):
        distil(Task(team.only("macc-tcp"), team), SMALL)


def test_k_goes_up_far_from_the_target_and_down_near_it():
    teacher = random_policies.policy("nuwa")
    task = Task(teacher, teacher)
    student = by_return.student(task, np.array([0.2, 0.4, 1.0, 1.5, 2.0, 0.0]))
    assert (student.leaves, student.depth) == (8, 4)
    names = [feature.name for feature in task.deriver(1).features]
    row = np.zeros((6, len(names)), np.int64)
    row[:, names.index("target_delay_us")] = 20_000, 20_000, 20_000, 20_000, 80_000, 80_000
    delays = np.array([3_000, 5_000, 21_000, 1_900, 30_000, 100_000])
    row[:, names.index("queueing_us")] = delays
    target = row[:, names.index("target_delay_us")]
    row[:, names.index("queueing_over_target")] = 1024 * delays // target
    # Too little queue, enough, too much; next to none; too little and enough for a long target.
    assert student.act(row).tolist() == [4, 0, 4, 4, 4, 0]


def test_thresholds_compete_with_imitations():
    teacher = random_policies.policy("nuwa")
    views = [one.student.view for one in distil(Task(teacher, teacher), SMALL).tried]
    assert views[:3] == ["present", "steered", "steered"]


def test_what_the_search_finds_is_proved_in_c(task, found, tmp_path):
    chosen = replace(found, chosen=by_return.student(task, plain(1.25)))
    described("tcco-tree", task, chosen, {"n": 1}, "# card\n", "the tests").write(tmp_path)
    report = prove(source_of(store.load(tmp_path / "tcco-tree")), ["c"], "test").report
    assert report["ok"], report
