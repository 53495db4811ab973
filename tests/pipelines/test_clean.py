"""Neither the pipeline nor an experiment touches what git holds, and git says what there is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from data import yaml_text
from models import store
from pipelines.cli import main

ROOT = Path(__file__).parents[2]

PIPELINE = """
stages:
  fit:
    cmd: python -c "import fit; fit.run()"
    deps: [fit.py]
    params: [leaf]
    outs: [models/trained]
  reproduced:
    cmd: cczoo zoo reproduced --trained models/trained --zoo models/zoo --out reports/r.json
    deps: [models/trained, models/zoo]
    outs: [reports/r.json]
  clock:
    cmd: python -c "import time; open('reports/clock', 'w').write(str(time.time()))"
    deps: [models/trained]
    outs: [reports/clock]
"""
FIT = """
import shutil, yaml
leaf = yaml.safe_load(open("params.yaml"))["leaf"]
shutil.copytree("models/zoo/nuwa-tanh", "models/trained/nuwa-tanh")
open("models/trained/leaf", "w").write(str(leaf))
def run(): pass
"""


def test_no_output_of_the_pipeline_is_tracked():
    stages = yaml_text.read(ROOT / "dvc.yaml")["stages"]
    outs = [o if isinstance(o, str) else next(iter(o)) for s in stages.values() for o in s["outs"]]
    assert len(outs) > 20
    tracked = git(ROOT, "ls-files", "--", *outs)
    assert tracked == ""
    ignored = git(ROOT, "check-ignore", "--", *outs).splitlines()
    assert sorted(ignored) == sorted(outs), "git status would name the others"


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=where, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """A small pipeline with a zoo in git, run once."""
    tmp_path = tmp_path_factory.mktemp("pipeline")
    (tmp_path / "models" / "zoo").mkdir(parents=True)
    assert main(["zoo", "add", "nuwa-tanh", "--zoo", f"{tmp_path}/models/zoo"]) == 0
    (tmp_path / "dvc.yaml").write_text(PIPELINE)
    (tmp_path / "fit.py").write_text(FIT)
    (tmp_path / "params.yaml").write_text("leaf: 5\n")
    (tmp_path / ".gitignore").write_text("models/trained/\nreports/\n.make/\n__pycache__/\n")
    (tmp_path / "reports").mkdir()
    git(tmp_path, "init", "--quiet", "-b", "main")
    git(tmp_path, "config", "user.email", "a@example.org")
    git(tmp_path, "config", "user.name", "a")
    run(tmp_path, "dvc", "init", "--quiet")
    run(tmp_path, "dvc", "repro", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    assert status(tmp_path) == []
    return tmp_path


@pytest.fixture
def checkout(pipeline, tmp_path):
    """A copy of it, for one test."""
    return shutil.copytree(pipeline, tmp_path, symlinks=True, dirs_exist_ok=True)


def run(where: Path, *command: str) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(where), str(ROOT)]),
        "DVC_NO_ANALYTICS": "1",
    }
    done = subprocess.run(
        command,
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def status(where: Path) -> list[str]:
    return sorted(git(where, "status", "--porcelain").splitlines())


def snapshot(where: Path) -> dict[str, bytes]:
    """Every file of the working tree but git's and DVC's own."""
    return {
        str(p.relative_to(where)): p.read_bytes()
        for p in where.rglob("*")
        if p.is_file() and not {".git", ".dvc", "__pycache__"} & set(p.relative_to(where).parts)
    }


def test_make_repro_leaves_gits_lock_and_goes_on_from_its_own(checkout):
    repro = [sys.executable, "-m", "pipelines.repro"]
    # Another machine: its outputs differ from those of the lock in git.
    shutil.rmtree(checkout / "reports")
    shutil.rmtree(checkout / ".dvc" / "cache")
    (checkout / "reports").mkdir()
    run(checkout, *repro)
    assert status(checkout) == []
    own = (checkout / ".make" / "dvc.lock").read_bytes()
    assert own != (checkout / "dvc.lock").read_bytes()
    made = snapshot(checkout)
    assert "didn't change" in run(checkout, *repro)
    assert snapshot(checkout) == made
    # A run that was killed has left its own lock in place.
    (checkout / ".make" / "dvc.lock.busy").touch()
    (checkout / "dvc.lock").write_bytes(own)
    assert "didn't change" in run(checkout, *repro)
    assert status(checkout) == []
    # One that the user changed stays.
    (checkout / "params.yaml").write_text("leaf: 6\n")
    run(checkout, "dvc", "repro", "--quiet")
    changed = (checkout / "dvc.lock").read_bytes()
    run(checkout, *repro)
    assert (checkout / "dvc.lock").read_bytes() == changed


def test_an_experiment_a_stash_and_its_pop_lose_nothing(checkout):
    zoo = snapshot(checkout / "models" / "zoo")
    run(checkout, "dvc", "exp", "run", "--quiet", "-n", "leaf9", "-S", "leaf=9")
    assert status(checkout) == [" M dvc.lock", " M params.yaml"]
    assert (checkout / "models" / "trained" / "leaf").read_text() == "9"
    made = snapshot(checkout)
    git(checkout, "stash")
    assert status(checkout) == []
    assert "leaf: 5" in (checkout / "params.yaml").read_text()
    git(checkout, "stash", "pop")
    assert snapshot(checkout) == made
    assert status(checkout) == [" M dvc.lock", " M params.yaml"]
    assert snapshot(checkout / "models" / "zoo") == zoo
    assert store.names(checkout / "models" / "zoo") == ["nuwa-tanh"]
    assert main(["zoo", "verify", "--zoo", f"{checkout}/models/zoo"]) == 0
