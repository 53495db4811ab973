"""A training that is killed and gone on with gives the curve of one that wasn't, bit for bit."""

import json
import random
import shutil
import signal
import time

import numpy as np
import pytest

from benchmarks.kills import child
from data.errors import UserError
from models.rl import agents, checkpoint, training

SMALL = {
    "recall": {"num_envs": 8, "rows": 20, "window": 10},
    "recall-transformer": {
        "num_envs": 8, "width": 16, "subflow_width": 8, "context": 6, "heads": 2,
        "learning_starts": 100, "target_every": 200, "alpha": 0.6, "capacity": 400,
        "report_every": 100,
    },
    "matrix": {
        "num_envs": 8, "learning_starts": 100, "batch": 32, "capacity": 400, "report_every": 100,
    },
}  # fmt: skip


def settings(name, steps):
    # A checkpoint after each round.
    more = {"steps": steps, "checkpoint_min": 1e-9, "warmup": 400, "validate_every": 300}
    return agents.settings(name, SMALL[name] | more)


@pytest.mark.parametrize("name", SMALL)
def test_the_curve_is_the_same_after_any_number_of_kills(name, tmp_path):
    params = settings(name, 900)
    training.train(name, params, tmp_path / "whole")
    rng, kills, tries, out = random.Random(4), 0, 0, tmp_path / "cut"
    while True:
        before = checkpoint.latest(out)
        process = child(name, params, out)
        if kills < 3:
            # As soon as it has got on by a checkpoint, at some moment of the next round.
            begun = time.monotonic()
            while checkpoint.latest(out) == before and process.is_alive():
                assert time.monotonic() < begun + 600
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.03))
            process.kill()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0
            tries += 1
            if kills or tries == 9:
                break
            # It came to its end before this process, on a busy machine, came to kill it.
            shutil.rmtree(out)
        else:
            kills += 1
    curves = [
        json.loads((tmp_path / part / training.CURVE).read_text()) for part in ("whole", "cut")
    ]
    assert kills
    assert curves[0] == curves[1]
    assert curves[0][-1]["updates"] > 20
    one, other = (checkpoint.read(checkpoint.latest(tmp_path / part)) for part in ("whole", "cut"))
    same(one, other)


def same(one, other):
    """Fail at the first leaf of two trees that differs."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    else:
        assert one == other


def test_other_settings_do_not_go_on_and_a_folder_in_use_is_not_overwritten(tmp_path):
    params = settings("matrix", 200)
    training.train("matrix", params, tmp_path)
    with pytest.raises(UserError, match="go on with --resume"):
        training.train("matrix", params, tmp_path)
    other = params.model_copy(update={"gamma": 0.5})
    with pytest.raises(UserError, match=r"was trained with gamma=0.9, not 0.5"):
        training.train("matrix", other, tmp_path, resume=True)
    with pytest.raises(UserError, match="a training of 'matrix', not of 'recall'"):
        training.train("recall", settings("recall", 200), tmp_path, resume=True)
    longer = params.model_copy(update={"steps": 400})
    assert training.train("matrix", longer, tmp_path, resume=True).curve[-1]["steps"] >= 400


def test_a_setting_that_came_after_a_checkpoint_had_its_default_value(tmp_path):
    params = settings("matrix", 200)
    path = training.train("matrix", params, tmp_path).checkpoint
    tree = checkpoint.read(path)
    del tree["settings"]["schedule"]
    networks = {name: tree[name] for name in checkpoint.NETWORKS}
    checkpoint.write(tmp_path, 200, {**tree, **networks})
    longer = params.model_copy(update={"steps": 400})
    other = longer.model_copy(update={"schedule": "cosine"})
    with pytest.raises(UserError, match="was trained with schedule=linear, not cosine"):
        training.train("matrix", other, tmp_path, resume=True)
    assert training.train("matrix", longer, tmp_path, resume=True).curve[-1]["steps"] >= 400


def test_two_trainings_do_not_share_a_folder(tmp_path):
    params = settings("matrix", 200)

    def again(_):
        with pytest.raises(UserError, match="a training is at work there"):
            training.train("matrix", params, tmp_path, resume=True)

    training.train("matrix", params, tmp_path, watch=again)


def test_being_asked_to_stop_leaves_a_checkpoint(tmp_path):
    params = settings("matrix", 5_000).model_copy(update={"checkpoint_min": 60.0})
    seen = []
    found = training.train(
        "matrix", params, tmp_path, watch=seen.append, stop=lambda: len(seen) == 3
    )
    assert not found.whole
    assert checkpoint.latest(tmp_path) == found.checkpoint
    assert [one.steps for one in seen][-1] == int(found.curve[-1]["steps"])
    assert seen[-1].left_s > 0


def test_a_finished_training_is_left_as_it_is(tmp_path):
    params = agents.settings("matrix", {"steps": 400, "num_envs": 8})
    first = training.train("matrix", params, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in first.checkpoint.iterdir()}
    again = training.train("matrix", params, tmp_path, resume=True)
    assert again.checkpoint == first.checkpoint
    assert {path: path.stat().st_mtime_ns for path in again.checkpoint.iterdir()} == before
