"""Distillation: trees that say one action, weights, rounds, and the entry that comes of them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import random_policies

from data.errors import UserError
from export.policy.student import described
from export.proof import prove
from export.source import source_of
from models import store
from models.closedloop import Player
from models.distill import judge, others
from models.distill.params import Distill
from models.distill.rollout import Actor, Rows, Task, play, returns
from models.distill.scores import by_scores
from models.distill.search import columns, distil, weights_of
from models.distill.tree import Student, fitted
from models.envs.samplers import HELD_OUT, TRAINING, VALIDATION
from models.policies import entry, replay
from pipelines import distill
from pipelines.zoo.verify import verify_entry

SMALL = Distill(rounds=2, lanes=2, steps=12, seeds=2, episodes=1, leaves=32, least=1)


@pytest.fixture(scope="module")
def task():
    team = random_policies.policy("macc")
    return Task(team.only("macc-tcp"), team)


@pytest.fixture(scope="module")
def found(task):
    return distil(task, SMALL)


@pytest.fixture(scope="module")
def made(task, found, tmp_path_factory):
    """The entry of a student."""
    zoo = tmp_path_factory.mktemp("zoo")
    described("macc-tcp-tree", task, found, {"n": 1}, "# card\n", "the tests").write(zoo)
    return store.load(zoo / "macc-tcp-tree")


def grown(seen, wanted, weights=None, actions=3, **more):
    bounds = {"depth": 4, "leaves": 16, "least": 1, "seed": 0, **more}
    return fitted(seen, wanted, weights, np.arange(seen.shape[1]), actions=actions, **bounds)


def test_leaves_that_say_the_same_side_by_side_are_one():
    rng = np.random.default_rng(0)
    seen = rng.integers(0, 1000, (500, 3))
    wanted = (seen[:, 1] > 500).astype(np.int64) * 2
    # Some noise, which a tree splits without changing what either side says.
    wanted[rng.random(500) < 0.1] = 1
    tree = grown(seen, wanted).tree_
    assert (tree.value.max(axis=2)[tree.children_left < 0] == 1.0).all()
    says = tree.value[:, 0].argmax(axis=1)
    for node in np.flatnonzero(tree.children_left >= 0):
        left, right = tree.children_left[node], tree.children_right[node]
        both_leaves = tree.children_left[left] < 0 and tree.children_left[right] < 0
        assert not (both_leaves and says[left] == says[right])


def test_actions_keep_their_numbers_though_some_are_never_wanted():
    seen = np.arange(20)[:, None]
    student = Student(grown(seen, np.where(seen[:, 0] < 10, 2, 1)), "all", 0)
    assert student.act(seen).tolist() == [2] * 10 + [1] * 10
    assert (student.leaves, student.depth) == (2, 1)


def test_rows_count_by_what_a_wrong_action_would_cost():
    # Eight rows at hand want 0 and hardly care, two want 1 and do.
    seen = np.zeros((10, 1), np.int64)
    scores = np.array([[0.01, 0.0]] * 8 + [[0.0, 1.0]] * 2)
    rows = Rows(seen, scores)
    wanted = scores.argmax(axis=1)
    plain = grown(seen, wanted, weights_of(rows, "none"), actions=2)
    weighted = grown(seen, wanted, weights_of(rows, "gap"), actions=2)
    assert Student(plain, "all", 0).act(seen[:1]).tolist() == [0]
    assert Student(weighted, "all", 0).act(seen[:1]).tolist() == [1]
    assert weights_of(rows, "gap").mean() == pytest.approx(1.0)


def test_parts_of_the_data_share_no_episodes(task):
    found = {part: returns(task, None, part, 0, 2, 6) for part in (TRAINING, VALIDATION, HELD_OUT)}
    values = np.concatenate(list(found.values()))
    assert len(np.unique(values)) == len(values)
    again = returns(task, None, VALIDATION, 0, 2, 6)
    np.testing.assert_array_equal(again, found[VALIDATION])


def test_the_teacher_is_asked_where_the_student_has_led(task, found):
    _, rows = play(task, found.chosen, TRAINING, 0, 2, 10)
    assert rows.scores.shape == (2 * 10 * 3, 3)
    assert np.isfinite(rows.scores).all()
    acted = found.chosen.act(rows.seen)
    assert set(np.unique(acted)) <= {0, 1, 2}


def test_what_is_chosen_is_as_good_in_validation_as_the_best_and_within_bounds(task, found):
    top = max(one.mean for one in found.tried)
    chosen = returns(task, found.chosen, VALIDATION, SMALL.seed, SMALL.lanes, SMALL.steps).mean()
    assert chosen >= top - SMALL.tolerance * abs(top)
    assert found.chosen.leaves <= SMALL.leaves
    assert found.chosen.depth <= SMALL.depth
    assert len(columns(task, "present")) < len(columns(task, "all")) == found.seen.shape[1]


def test_relative_return_is_paired_by_seed():
    teacher = np.array([1.0, 5.0, 9.0])
    found = judge.relative(teacher - 0.05, teacher)
    assert found.mean == pytest.approx(-0.01)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-12)


def test_the_entry_acts_as_the_student_and_plays_the_same_again(task, found, made):
    policy = entry.of_entry(made)
    assert replay.differing(policy, made.read_json("replay.json")) == []
    differing = []

    def watch(batch, actions):
        # The student sees what the entry's own actor saw.
        seen = actor.see(batch)
        own = actions[:, actor.own]
        meant = found.chosen.act(seen.reshape(-1, seen.shape[2])).reshape(own.shape)
        differing.append(((own != meant) & batch.mask[:, actor.own]).sum())

    from models.rl.layout import Layout

    actor = Actor(task, Layout((0, 0), *[policy.layout.action_counts] * 1,
                               policy.layout.feature_counts, 1), 1)  # fmt: skip
    Player(policy).play([(random_policies.scenario(flows=2), 1)], watch)
    assert len(differing) > 2
    assert sum(differing) == 0


def test_the_entry_is_checked_and_proved_with_the_code_of_what_it_sees(made):
    assert verify_entry(made)["problems"] == []
    report = prove(source_of(made), ["c", "onnx", "python"], "test").report
    assert report["ok"], report
    assert report["targets"][0]["companion"]["rows"] > 1000


def test_two_trees_play_as_one_team(made):
    one = entry.of_entry(made)
    other = replace(one, name="other", kinds=(1,), trees=((1, one.trees[0][1]),))
    both = one.joined(other, "macc-tree")
    assert (both.kinds, len(both.trees)) == ((0, 1), 2)
    assert both.only("macc-tcp-tree", (0,)).trees == one.trees
    with pytest.raises(UserError, match="is a tree and macc is none"):
        one.joined(random_policies.policy("macc"), "x")


def test_the_command_prints_what_scripts_read(task, tmp_path, monkeypatch, capsys):
    from pipelines.cli import main

    monkeypatch.setattr(distill, "task_of", lambda name: task)
    out = tmp_path / "macc-tcp-tree"
    words = ["rounds=1", "lanes=2", "steps=8", "seeds=2", "episodes=1"]
    settings = [part for word in words for part in ("--set", word)]
    args = ["distill", "macc-tcp", "--depth", "3", "--leaves", "8", *settings]
    assert main([*args, "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"student", "leaves", "depth", "relative_return", "ns"} <= result.keys()
    assert result["leaves"] <= 8
    assert result["depth"] <= 3
    assert result["relative_return"].keys() == {"mean", "low", "high"}
    assert verify_entry(store.load(out))["problems"] == []
    assert main(["distill", "macc-tcp", "--set", "round=3"]) == 2
    assert main(["distill", "macc-tcp", "--out", str(tmp_path / "other")]) == 2
    assert "the entry is called macc-tcp-tree" in capsys.readouterr().err


def test_names_that_have_no_teacher_are_refused():
    with pytest.raises(UserError, match="distil them one by one"):
        distill.task_of("macc")


def test_splits_by_scores_heed_what_a_wrong_action_costs():
    """Few rows for which it matters outweigh the many that are nearly indifferent."""
    seen = np.arange(200)[:, None]
    scores = np.zeros((200, 2))
    # Most rows prefer one by a hair at odd numbers, which a split can't follow; the last prefer
    # the other by much.
    scores[::2, 0] = 0.002
    scores[1::2, 1] = 0.001
    scores[180:] = [0.0, 5.0]
    bounds = {"depth": 3, "leaves": 2, "least": 1, "actions": 2, "seed": 0}
    tree = by_scores(seen, scores, None, np.array([0]), **bounds)
    acts = Student(tree, "all", 0).act(seen)
    assert (acts[180:] == 1).all()
    assert (acts[:180] == 0).all()
    assert tree.tree_.threshold[0] == 179.5


@pytest.mark.parametrize("name", others.OTHERS)
def test_other_families_learn_what_a_few_features_say(name):
    rng = np.random.default_rng(3)
    seen = rng.integers(0, 1000, (1500, 5))
    wanted = (seen[:, 2] > 400).astype(np.int64) + (seen[:, 4] > 700)
    one = others.fit(name, seen, wanted, np.ones(len(seen)), 7)
    assert (one.act(seen) == wanted).mean() > 0.85
    assert re.search(r"\d+ (leaves|weights|cells)$", one.size)
