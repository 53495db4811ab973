"""`dvc exp run -S` with a wrong value: one line, and params.yaml as it was."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from data import yaml_text

ROOT = Path(__file__).parents[2]
STAGES = yaml_text.read(ROOT / "dvc.yaml")["stages"]


def run(folder, *words, status=0):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "DVC_NO_ANALYTICS": "1",
    }
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with this one's settings and first stage, and a stage that comes after it."""
    tmp_path = tmp_path_factory.mktemp("repository")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    after = {
        "cmd": "echo ran >> trained && cp params.yaml used.yaml",
        "deps": STAGES["params"]["outs"],
        "params": ["models.sbd.search"],
        "outs": ["used.yaml"],
    }
    # The code is this checkout's; a copy of it would be in the way of its own import.
    stages = {"params": {**STAGES["params"], "deps": ["params.yaml"]}, "after": after}
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
    (tmp_path / ".gitignore").write_text("trained\ndata/\n")
    run(tmp_path, "git", "init", "-q")
    run(tmp_path, "git", "config", "user.email", "nobody@example.org")
    run(tmp_path, "git", "config", "user.name", "nobody")
    run(tmp_path, "dvc", "init", "-q")
    run(tmp_path, "dvc", "repro", "-q")
    run(tmp_path, "git", "add", "-A")
    run(tmp_path, "git", "commit", "-qm", "all")
    return tmp_path


@pytest.fixture
def checkout(repository, tmp_path):
    """A copy of it, for one test."""
    return shutil.copytree(repository, tmp_path, symlinks=True, dirs_exist_ok=True)


def ran(checkout):
    return (checkout / "trained").read_text().count("ran")


def test_a_wrong_value_leaves_params_as_they_were(checkout):
    before = (checkout / "params.yaml").read_bytes()
    words = ["-S", "models.sbd.zoo_leaf=20", "--set-param", "params.yaml:models.sbd.search.folds=0"]
    said = run(checkout, "dvc", "exp", "run", *words, status=255)
    (line,) = [one for one in said.splitlines() if one.startswith("params.yaml: ")]
    assert "models.sbd.search.folds: input should be greater than or equal to 2, not 0" in line
    assert line.endswith("(params.yaml is as it was before -S)")
    assert (checkout / "params.yaml").read_bytes() == before
    assert run(checkout, "git", "status", "--porcelain") == ""
    assert ran(checkout) == 1, "no other stage has run"
    assert run(checkout, "dvc", "exp", "list", "--name-only") == ""


@pytest.mark.parametrize("wrong", ["+models.sbd.search.fold=3", "models.sbd.seed=abc"])
def test_new_keys_and_wrong_types_are_put_back_too(checkout, wrong):
    before = (checkout / "params.yaml").read_bytes()
    said = run(checkout, "dvc", "exp", "run", "-S", wrong, status=255)
    assert "params.yaml: models.sbd.se" in said
    assert (checkout / "params.yaml").read_bytes() == before


def test_other_changes_that_were_not_committed_stay(checkout):
    path = checkout / "params.yaml"
    path.write_text(path.read_text().replace("bootstrap: 1000", "bootstrap: 300 # fewer"))
    meant = yaml.safe_load(path.read_text())
    said = run(checkout, "dvc", "exp", "run", "-S", "models.sbd.search.folds=0", status=255)
    assert "has its committed models.sbd.search.folds again, and your other changes" in said
    assert yaml.safe_load(path.read_text()) == meant
    assert "bootstrap: 300 # fewer" in path.read_text()


def test_what_a_person_has_written_is_never_put_back(checkout):
    path = checkout / "params.yaml"
    path.write_text(path.read_text().replace("folds: 3, subsets", "folds: 0, subsets"))
    wrong = path.read_bytes()
    for command in (["dvc", "repro"], ["dvc", "exp", "run"]):
        said = run(checkout, *command, status=255)
        assert "models.sbd.search.folds" in said
        assert yaml.safe_load(path.read_bytes()) == yaml.safe_load(wrong)


def test_a_right_value_runs_what_depends_on_it_and_stays(checkout):
    run(checkout, "dvc", "exp", "run", "-S", "models.sbd.zoo_leaf=20")
    assert ran(checkout) == 1, "this stage doesn't read that setting"
    run(checkout, "dvc", "exp", "run", "-n", "five", "-S", "models.sbd.search.folds=5")
    assert ran(checkout) == 2
    assert yaml.safe_load((checkout / "params.yaml").read_text())["models"]["sbd"]["search"][
        "folds"
    ] == 5  # fmt: skip
    assert "five" in run(checkout, "dvc", "exp", "list", "--name-only")


def test_every_stage_waits_for_the_settings():
    produced = {
        (out if isinstance(out, str) else next(iter(out))): name
        for name, stage in STAGES.items()
        for out in stage["outs"]
    }
    before = {
        name: {
            produced[out]
            for out in produced
            for dep in stage["deps"]
            if f"{dep}/".startswith(f"{out}/") or f"{out}/".startswith(f"{dep}/")
        }
        for name, stage in STAGES.items()
    }

    def reaches(name, seen=()):
        return name == "params" or any(
            reaches(one, (*seen, name)) for one in before[name] if one not in seen
        )

    assert [name for name in STAGES if not reaches(name)] == []
