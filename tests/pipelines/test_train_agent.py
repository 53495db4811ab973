"""``cczoo train`` of an agent: settings, progress, curves, going on, being stopped, searching."""

import hashlib
import json
import os
import platform
import signal
from pathlib import Path

import numpy as np
import pytest

from data.errors import UserError
from models import parallel
from models.stats.aggregate import iqm
from pipelines import cli, train
from pipelines.rl import asked
from pipelines.rl.changes import changes
from pipelines.rl.compared import interval, problem
from pipelines.rl.cost import COST
from pipelines.rl.progress import line

ROOT = Path(__file__).parents[2]

QUICK = (
    "num_envs=16", "report_every=200", "learning_starts=200", "batch=16", "warmup=200",
)  # fmt: skip


@pytest.fixture
def command(monkeypatch, tmp_path, capsys, local):
    """Runs a training of the matrix game; exit status, what it printed as JSON, and stderr."""
    for name in ("matrix", "recall"):
        monkeypatch.setitem(train.TASKS, name, ("pipelines.rl.command", "a known optimum"))

    def run(*words, quick=QUICK):
        given = ["train", "matrix", "--out", str(tmp_path / "out"), "--json", *words]
        code = cli.main([*given, *(part for one in quick for part in ("--set", one))])
        printed = capsys.readouterr()
        return code, json.loads(printed.out or "null"), printed.err

    return run


@pytest.mark.parametrize(
    ("words", "tree"),
    [
        (["rate=1e-3", "steps=5"], {"rate": 0.001, "steps": 5}),
        (["env.delay=4", "env.kind=long"], {"env": {"delay": 4, "kind": "long"}}),
        (["hidden=[8, 8]", "centre=false"], {"hidden": [8, 8], "centre": False}),
    ],
)
def test_settings_are_yaml_and_dots_make_a_tree(words, tree):
    assert changes(words) == tree


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (["rate"], "--set rate: KEY=VALUE expected"),
        (["=3"], "KEY=VALUE expected"),
        (["env=3", "env.delay=4"], "env has a value already"),
        (["rate=[1"], "not YAML"),
        (["rate=" + "[" * 50], "nested too deeply"),
    ],
)
def test_a_word_that_is_no_setting_is_refused(word, message):
    with pytest.raises(UserError, match=message):
        changes(word)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "rat=1"], "did you mean 'rate'?"),
        (["--set", "gamma=2"], "gamma: input should be less than 1, not 2"),
        (["--seeds", "0"], "--seeds must be at least 1"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(command, words, message):
    code, _, told = command(*words)
    assert code == 2
    assert message in told
    assert len(told.strip().splitlines()) == 1


def test_it_trains_seed_by_seed_sends_curves_and_goes_on(command, tmp_path):
    import mlflow

    code, result, told = command("--set", "steps=600", "--seeds", "2", "--judge", "5")
    assert code == 0, told
    assert result["seeds"] == [7, 8]
    for one in result["runs"].values():
        assert one["steps"] >= 600
        assert 0 < one["judged"] <= 5
        assert one["steps_per_s"] > 0
    assert "matrix, seed 8: " in told
    assert "steps/s" in told
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    found = client.search_runs([client.get_experiment_by_name("agents").experiment_id])
    assert sorted(run.info.run_name for run in found) == ["matrix-7", "matrix-8"]
    points = client.get_metric_history(found[0].info.run_id, "return")
    assert points[-1].step >= 600
    assert found[0].data.params["gamma"] == "0.9"

    spent = COST.read(tmp_path / "out" / "seed-7")
    assert spent.cpu_s > 0
    assert spent.runs == 1
    assert spent.lock == hashlib.sha256((ROOT / "uv.lock").read_bytes()).hexdigest()
    assert spent.cpu.endswith(f", {platform.machine()}")

    code, _, told = command("--set", "steps=900", "--no-track")
    assert code == 2
    assert "go on with --resume" in told
    assert COST.read(tmp_path / "out" / "seed-7") == spent
    code, result, _ = command("--set", "steps=900", "--no-track", "--resume")
    assert code == 0
    assert result["runs"]["7"]["steps"] >= 900
    more = COST.read(tmp_path / "out" / "seed-7")
    assert more.cpu_s > spent.cpu_s
    assert more.runs == 2
    assert more.command == spent.command
    curve = json.loads((tmp_path / "out" / "seed-7" / "curve.json").read_text())
    assert [point["steps"] for point in curve] == sorted(point["steps"] for point in curve)
    assert curve[0]["steps"] < 600


def test_an_agent_is_judged_beside_policies_by_hand(monkeypatch, tmp_path, capsys):
    from pipelines.studies.environments import judge

    rows = judge.PROBLEMS["MA-CC, dumbbell"]
    few = [next(row for row in rows if row[1] == kind) for kind in (judge.RANDOM, judge.CONSTANT)]
    monkeypatch.setitem(judge.PROBLEMS, "MA-CC, dumbbell", few)
    # Whole episodes would take long, and show no more.
    monkeypatch.setattr(judge, "play", lambda row, seeds, play=judge.play: play(row, seeds, 6))
    words = ["train", "macc", "--out", str(tmp_path), "--no-track", "--seeds", "2", "--judge", "3"]
    quick = ("steps=64", "num_envs=4", "validate_every=0", "warmup=32", "learning_starts=32")
    code = cli.main([*words, "--json", *(part for one in quick for part in ("--set", one))])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    found = json.loads(printed.out)
    assert (found["name"], found["seeds"], found["steps"]) == ("macc", [7, 8], 64)
    assert found["return"]["low"] <= found["return"]["iqm"] <= found["return"]["high"]
    assert found["best"] == {"random": "random", "constant": few[1][0], "script": None}
    again = judge.play(few[1], 3)
    assert found["baselines"]["constant"] == pytest.approx(float(iqm(again.returns[None])))
    assert found["baselines"]["script"] is None
    assert f"({few[1][0]})" in printed.err


def test_an_interval_is_as_wide_as_seeds_differ():
    seeds, noise = np.arange(10.0), np.random.default_rng(1).normal(0, 0.1, (10, 16))
    low, high = interval(seeds[:, None] + noise)
    assert 2.0 < high - low < 6.0
    low, high = interval(np.full((10, 1), 4.0) + noise)
    assert 0.0 < high - low < 0.2
    assert interval(noise[:1]) == (None, None)


def test_where_nothing_by_hand_plays_there_are_no_baselines():
    from models.rl import agents

    for words, found in (
        ({}, "TCCO, alternating"),
        ({"env": {"sampler": "mixed_paths"}}, "TCCO, mixed_paths"),
        ({"env": {"sampler": "tcco-fig9a"}}, None),
        ({"env": {"params": {"subflows": 3}}}, None),
    ):
        assert problem("tcco", agents.settings("tcco", words)) == found
    # Three senders are the default; that problem has eight.
    many = agents.settings("macc", {"env": {"sampler": "many_senders"}})
    assert problem("macc", many) is None


def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(command, monkeypatch, tmp_path):
    from models.rl.algorithms.replay import ReplayAlgorithm

    step, calls = ReplayAlgorithm.training_step, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        step(self)

    monkeypatch.setattr(ReplayAlgorithm, "training_step", interrupted)
    code, result, told = command("--set", "steps=50000", "--no-track", "--seeds", "2")
    assert code == 1
    assert "stopped: go on with --resume" in told
    assert len(calls) == 3
    assert result["seeds"] == [7]
    code, result, _ = command("--set", "steps=1000", "--no-track", "--resume")
    assert code == 0
    assert result["runs"]["7"]["steps"] >= 1000


def test_a_second_signal_ends_at_once():
    # Ray Tune, which another test runs, leaves a handler of its own.
    before = signal.getsignal(signal.SIGINT)
    with asked.to_stop() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_line_tells_return_speed_and_time_left():
    from models.rl.training import Progress

    progress = Progress(500, 1000, 1.2345, 250.0, 3725.0, {"reward": 0.125})
    assert line(progress) == "return 1.234 (0.125 a step), 250 steps/s, 1:02:05 left"
    assert line(Progress(5, 10, None, 5.0, 1.0, {})).startswith("no episode yet, 5 steps/s")


@pytest.mark.xdist_group("ray")
def test_a_search_tells_the_best_settings(command, tmp_path):
    try:
        code, result, told = command("--set", "steps=400", "--tune", "2", "--no-track")
    finally:
        parallel.stop()
    assert code == 0, told
    assert len(result["trials"]) == 2
    assert result["return"] == max(one["return"] for one in result["trials"])
    assert set(result["trials"][0]["settings"]) == {"rate", "gamma", "tau", "update_every"}
    assert result["settings"]["batch"] == 16
    assert json.loads((tmp_path / "out" / "tune.json").read_text()) == result
