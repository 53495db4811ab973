"""AutoML: validation by connection, the process of auto-sklearn, errors that say what to do."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from data.errors import UserError
from models.sbd import automl
from models.sbd.automl import autosklearn_backend, build, environment, rebuilt, task

SEARCH_S = 300
"""Never reached: these searches end with their trials, on a busy machine too."""


def problem(connections=40, windows=4, noise=0.3, seed=0):
    """Windows of connections; the first feature tells the class."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(connections), windows)
    y = group % 2
    x = rng.normal(size=(len(group), 4))
    x[:, 0] = y + noise * x[:, 0]
    return x, y, group


def test_flaml_finds_what_tells_the_class():
    x, y, group = problem()
    x_test, y_test, _ = problem(seed=5)
    asked = task.Task(x, y, group, SEARCH_S, (x_test,), seed=1, trials=4)
    result = automl.search("flaml", asked)
    assert ((result.probability[0] > 0.5) == y_test).mean() > 0.85
    assert 1 <= len(result.trials) <= 4
    best = result.members[0]
    assert best.weight == 1.0
    assert np.allclose(best.estimator.predict_proba(x_test)[:, 1], result.probability[0])
    assert best.loss == pytest.approx(min(t.loss for t in result.trials))
    losses = [row["loss"] for row in result.trajectory()]
    assert losses == sorted(losses, reverse=True)
    assert json.loads(json.dumps(result.described()))["evaluated"] == len(result.trials)


def test_flaml_validates_by_connection():
    """Rows that name their connection predict nothing of another one."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(60), 6)
    y = rng.integers(0, 2, 60)[group]
    # By rows a tree would look the answer up: a connection's number tells its class.
    x = np.stack([group + rng.normal(0, 0.01, len(group)), rng.normal(size=len(group))], axis=1)
    result = automl.search("flaml", task.Task(x, y, group, SEARCH_S, seed=1, trials=3))
    assert min(trial.loss for trial in result.trials) > 0.3


def test_auto_sklearn_validates_by_connection():
    _, y, group = problem(connections=31)
    fold = autosklearn_backend.validation(y, group, seed=4)
    assert set(fold) == {-1, 0}
    assert not set(group[fold == 0]) & set(group[fold == -1])
    assert (fold == 0).mean() == pytest.approx(1 / 3, abs=0.08)
    assert set(y[fold == 0]) == {0, 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": 0}, "--seconds"),
        ({"trials": 0}, "--trials"),
        ({"y": np.zeros(160, dtype=np.int64)}, "0 connections of class SB"),
    ],
)
def test_impossible_tasks_are_refused(change, message):
    x, y, group = problem()
    with pytest.raises(UserError, match=message):
        task.Task(**{"x": x, "y": y, "group": group, "seconds": 9.0, **change})


def test_an_unknown_backend_is_told_the_nearest():
    with pytest.raises(UserError, match=r"did you mean 'auto-sklearn'"):
        automl.check("autosklearn")


def test_auto_sklearn_that_isnt_installed_says_how(tmp_path, monkeypatch):
    monkeypatch.setattr(environment.built_interpreter, "__defaults__", (tmp_path,))
    with pytest.raises(UserError, match=r"isn't installed.*make automl.*--backend flaml"):
        automl.check("auto-sklearn")
    (tmp_path / "stamp.json").write_text('{"requirements": "of long ago"}')
    with pytest.raises(UserError, match="out of date"):
        automl.check("auto-sklearn")


STAND_IN = """#!{python}
import json, sys
from pathlib import Path
import numpy as np
folder = Path(sys.argv[2])
task = json.loads((folder / "task.json").read_text())
x, y, fold = (np.load(folder / f"{{n}}.npy", allow_pickle=False) for n in ("x", "y", "fold"))
assert len(x) == len(y) == len(fold)
{body}
"""
ANSWER = """
cut = (x[y == 1, 0].mean() + x[y == 0, 0].mean()) / 2
queries = [np.load(folder / f"query-{i}.npy") for i in range(task["queries"])]
for i, q in enumerate(queries):
    p = (q[:, 0] > cut) * 0.8 + 0.1
    for stem in ("probability", "member-0-probability", "member-1-probability"):
        np.save(folder / f"{stem}-{i}.npy", p if stem != "member-1-probability" else 1 - p)
for k in (0, 1):
    np.savez(folder / f"member-{k}.npz", feature=[0, -1, -1], threshold=[cut, 0, 0],
             children_left=[1, -1, -1], children_right=[2, -1, -1], value=[0, 0.1, 0.9],
             nodes=[3], columns=[0, 2])
form = {"kind": "trees", "link": "mean", "single": False, "prior": 0.0, "steps": 0}
member = {"run": 2, "loss": 0.1, "learner": "decision_tree", "settings": {}, "form": form,
          "reason": ""}
(folder / "result.json").write_text(json.dumps({
    "about": {"auto-sklearn": "9.9", "seed": task["seed"], "trials": task["trials"]},
    "trials": [{"seconds": 1.0, "learner": "decision_tree", "loss": 0.1, "status": "ok"}],
    "members": [{**member, "run": 3, "weight": 0.7}, {**member, "weight": 0.3}],
}))
"""


def stand_in(tmp_path, body):
    """An interpreter that takes the runner's place and does ``body``."""
    path = tmp_path / "python"
    path.write_text(STAND_IN.replace("{{n}}", "{n}").format_map(
        {"python": sys.executable, "body": body, "n": "{n}"}
    ))  # fmt: skip
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def ask(tmp_path, body, **change):
    x, y, group = problem()
    asked = task.Task(x, y, group, **{"seconds": 30.0, "queries": (x[:50],), "seed": 7, **change})
    return autosklearn_backend.search(asked, task.silent, python=stand_in(tmp_path, body))


def test_arrays_go_there_and_members_come_back(tmp_path):
    result = ask(tmp_path, ANSWER, trials=5)
    x, y, _ = problem()
    assert result.about == {"seed": 7, "trials": 5}
    assert result.version == "9.9"
    assert ((result.probability[0] > 0.5) == y[:50]).mean() > 0.85
    good, other = result.members
    assert (good.name, good.weight, good.reason) == ("3-decision-tree", 0.7, "")
    assert np.allclose(good.estimator.predict_proba(x[:50])[:, 1], result.probability[0])
    # The second one's arrays don't answer as it did itself.
    assert other.estimator is None
    assert "answers differently, by 0.8" in other.reason
    assert result.cpu_s > 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise SystemExit('no memory is left')", "auto-sklearn failed: no memory is left"),
        ("sys.exit(3)", "status 3, without a word"),
        ("pass", "left no readable result"),
        (ANSWER + "np.save(folder / 'probability-0.npy', np.zeros(3))", r"answered \(3,\) for 50"),
        (
            ANSWER + "np.save(folder / 'probability-0.npy', np.array([{}]), allow_pickle=True)",
            "no readable probability-0.npy",
        ),
    ],
)
def test_what_goes_wrong_there_is_told(tmp_path, body, message):
    with pytest.raises(UserError, match=message):
        ask(tmp_path, body)


def test_nothing_is_left_running(tmp_path):
    """The runner's own children end with it, whatever they do."""
    child = "import subprocess; c = subprocess.Popen(['sleep', '600']); "
    note = f"Path({str(tmp_path / 'child')!r}).write_text(str(c.pid)); sys.exit(1)"
    with pytest.raises(UserError):
        ask(tmp_path, child + note)
    pid = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and running(pid):
        time.sleep(0.05)
    assert not running(pid)


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_progress_counts_the_seconds_of_a_budget():
    told = []

    def progress(items, what, total):
        for item in items:
            told.append((item, what, total))
            yield item

    deadline = time.monotonic() + 120
    with task.ticking(progress, "flaml", 1.5):
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
    assert told == [(1, "flaml", 1)]


needs_auto_sklearn = pytest.mark.skipif(
    not environment.is_built(), reason="auto-sklearn isn't installed: make automl"
)


@needs_auto_sklearn
def test_members_of_auto_sklearn_answer_the_same_here(tmp_path):
    x, y, _ = problem(connections=60, windows=5)
    np.save(tmp_path / "x.npy", x * [1, 10, 100, 1])
    np.save(tmp_path / "y.npy", y)
    script = Path(__file__).with_name("automl_members.py")
    subprocess.run(
        [environment.interpreter(), script, environment.ISOLATED, tmp_path],
        check=True, env={"PATH": os.environ["PATH"]}, timeout=3600,
    )  # fmt: skip
    told = json.loads((tmp_path / "told.json").read_text())
    reasons = {name: one["reason"] for name, one in told.items() if one["reason"]}
    assert reasons == {
        "pca": "the step PCA isn't a selection of single features",
        "quantiles": "the step QuantileTransformer isn't a scaling of single features",
        "kernel": "SVC has no integer form",
    }
    for name, one in told.items():
        if not one["reason"]:
            arrays = dict(np.load(tmp_path / f"{name}.npz", allow_pickle=False))
            estimator = rebuilt.estimator(one["form"], arrays, 4)
            meant = np.load(tmp_path / f"{name}-probability.npy")
            found = estimator.predict_proba(np.load(tmp_path / "x.npy"))[:, 1]
            assert np.abs(found - meant).max() < 1e-9, name
            assert meant.std() > 0.01, name


def test_the_build_takes_the_best_interpreter_that_runs(tmp_path):
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\necho 3.9 True\n")
    bare = tmp_path / "python3.11"
    bare.write_text("#!/bin/sh\necho 3.11 False\n")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 127\n")
    for path in (old, bare, broken):
        path.chmod(0o755)
    assert build.choose(str(old), "uv").version == "3.9"
    with pytest.raises(UserError, match=r"python3\.11-dev"):
        build.choose(str(bare), "uv")
    with pytest.raises(UserError, match="AUTOML_PYTHON"):
        build.choose(str(broken), "uv")


def test_a_build_that_fails_says_where_to_look_and_leaves_no_stamp(tmp_path, capsys, monkeypatch):
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho no route to the package index\nexit 1\n")
    python = tmp_path / "python3.9"
    python.write_text("#!/bin/sh\necho 3.9 True\n")
    for path in (uv, python):
        path.chmod(0o755)
    monkeypatch.setattr(build.shutil, "which", lambda name: f"/usr/bin/{name}")
    home = tmp_path / "home"
    assert build.main(["--home", str(home), "--uv", str(uv), "--python", str(python)]) == 2
    said = capsys.readouterr().err
    assert "no route to the package index" in said
    assert "build.log" in said
    assert not environment.is_built(home)


def test_every_version_of_python_has_one_pin_for_each_package():
    for name, lines in build.pinned().items():
        markers = sorted(line.partition("; ")[2] for line in lines)
        assert markers in ([""], ['python_version < "3.10"', 'python_version >= "3.10"']), name
    assert {*build.TOOLS, *build.COMPILED} <= set(build.pinned())
