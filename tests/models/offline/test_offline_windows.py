"""Runs are cut, split and shuffled so that nothing is mixed that doesn't belong together."""

import numpy as np
import pytest
from offline_tables import ABOUT, SMALL, ending, runs

from data.decisions import files
from data.errors import UserError
from features import tcco
from features.intervals import scaled
from models.offline.params import Offline
from models.offline.source import Source
from models.offline.windows import Cutter, joined, shuffled

CUTTER = Cutter(8, 3, (tcco.FEATURES, tcco.HALF))


def test_a_window_holds_its_runs_rows_and_what_came_of_the_last():
    (run,) = runs(1, steps=19)
    found = CUTTER.cut(run, CUTTER.starts(run, 2))
    assert found.actions.shape == (3, 8, 3)
    seen = scaled(run.observation, tcco.FEATURES, tcco.HALF)
    assert np.array_equal(found.observations[0, :, :2], seen[2:11])
    assert np.array_equal(found.observations[1, 0], found.observations[0, 8])
    assert np.array_equal(found.actions[1, :, :2], run.action[10:18])
    # One row is left, of which nobody knows what came; the third part isn't there.
    assert found.mask[2, :, 0].tolist() == [True] + 8 * [False]
    assert not found.mask[..., 2].any()
    assert not found.known[2].any()
    assert found.known[1].tolist() == 8 * [True]
    assert np.allclose(found.own.sum(), run.reward[2:].sum())
    assert not found.opening.any()


def test_the_last_decision_counts_if_the_run_ends_by_itself():
    (run,) = map(ending, runs(1, steps=5))
    found = CUTTER.cut(run, CUTTER.starts(run))
    assert found.known[0].tolist() == 5 * [True] + 3 * [False]
    assert found.terminated[0].tolist() == 4 * [False] + [True] + 3 * [False]
    assert found.opening.all()


def test_everything_is_given_once_and_little_is_held():
    blocks = [CUTTER.cut(run, CUTTER.starts(run)) for run in runs(30)]
    held = []

    def fed():
        for number, block in enumerate(blocks):
            held.append((number + 1) * len(block))
            yield block

    given, most = [], 0
    for one in shuffled(fed(), 4, 20, np.random.default_rng(1)):
        given.append(one)
        most = max(most, held[-1] - sum(map(len, given)))
    assert most < 20 + len(blocks[0])
    whole, found = joined(blocks), joined(given)
    assert len(whole) - len(found) < 4
    assert found.observations.shape[1:] == whole.observations.shape[1:]
    order = [one.observations[0, 0, 0, 0] for one in given]
    assert order != sorted(order)


def test_scenarios_lie_on_one_side(decisions):
    source = Source(decisions, Offline(**SMALL, held_out=0.3))
    here = {run.scenario for run in source.runs(False)}
    there = {run.scenario for run in source.runs(True)}
    assert source.key == "scenario"
    assert len(here) + len(there) == 20
    assert len(there) > 1
    assert not here & there


def test_a_data_sets_own_splits_hold(tmp_path):
    names = ("train", "validation", "test")
    for name, run in zip(names, runs(3), strict=True):
        files.write(tmp_path / f"split={name}" / "a.parquet", ABOUT, iter([run]))
    source = Source(tmp_path, Offline(**SMALL))
    assert source.key == "split"
    assert [run.name for run in source.runs(False)] == ["run-000"]
    assert [run.name for run in source.runs(True)] == ["run-001"]


def test_few_windows_of_many_runs_lie_side_by_side(decisions):
    source = Source(decisions, Offline(**SMALL, of_run=2))
    blocks = list(source.windows(False, np.random.default_rng(1)))
    there = list(source.runs(False))
    assert [len(one) for one in blocks] == [2] * len(there)
    # The two files take turns.
    mixed = [run.name for run in source.runs(False, np.random.default_rng(1))]
    assert sorted(mixed) == [run.name for run in there]
    assert mixed[0] > "run-019" > mixed[1] or mixed[1] > "run-019" > mixed[0]


def test_batches_follow_the_seed(decisions):
    source = Source(decisions, Offline(**SMALL))
    one, same, other = (next(source.batches(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.observations, same.observations)
    assert not np.array_equal(one.observations, other.observations)


def test_mistakes_are_said_in_a_line(decisions, tmp_path):
    with pytest.raises(UserError, match="less than 5000 windows"):
        next(Source(decisions, Offline(**SMALL | {"batch": 5000})).batches(1))
    with pytest.raises(UserError, match="no Parquet file"):
        Source(tmp_path, Offline())
    files.write(tmp_path / "a.parquet", ABOUT.model_copy(update={"agent": "nuwa"}), runs(1))
    with pytest.raises(UserError, match="decisions of nuwa"):
        Source(tmp_path, Offline())
