"""The code that dvc.yaml's stages depend on is the code that they run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from data import yaml_text
from pipelines import stages
from pipelines.stage_imports import Project

ROOT = Path(__file__).parents[2]
TREE = yaml_text.read(ROOT / "dvc.yaml")


@pytest.fixture(scope="module")
def project():
    return Project(ROOT)


def test_every_stage_depends_on_what_it_runs_and_on_nothing_else(project):
    wanted = stages.rewritten(TREE, project)
    for name, stage in TREE["stages"].items():
        mend = f"{name}: python -m pipelines.stages --write"
        assert set(wanted[name]) - set(stage["deps"]) == set(), mend
        assert set(stage["deps"]) - set(wanted[name]) == set(), mend


def test_only_the_report_shows_results_of_benchmarks():
    depending = {
        name
        for name, stage in TREE["stages"].items()
        for dependency in stage["deps"]
        if dependency.startswith("benchmarks")
    }
    assert depending == {"report"}, "a benchmark that was run again would repeat the training"


def test_each_function_that_a_stage_begins_with_exists(project):
    for name, entries in stages.ENTRIES.items():
        for module, symbol in entries:
            found = project.module(module)
            assert found is not None, f"{name}: {module}"
            assert not symbol or symbol in found.definitions, f"{name}: {module}.{symbol}"


@pytest.mark.parametrize("name", ["ingest", "features"])
def test_what_a_command_imports_is_among_the_dependencies(name, project, tmp_path):
    """The interpreter's own list of imports, beside the one that is read in the code."""
    source = ROOT / "tests" / "golden" / "klog.klog"
    commands = {
        "ingest": ["ingest", str(source), "--out", str(tmp_path / "events")],
        "features": ["features", "sbd", "--events", str(tmp_path / "events"), "--jobs", "1",
                     "--out", str(tmp_path / "sbd.parquet"), "--params", "params.yaml"],
    }  # fmt: skip
    for command in dict.fromkeys(["ingest", name]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "pipelines.cli", *commands[command]],
            cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
    loaded = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.M)) & set(project.paths)
    assert "data.errors" in loaded, "importtime prints what it did before"
    entries = (*stages.ENTRIES[name], *stages.SETTINGS)
    allowed = project.closure(entries, stages.NEVER)
    bare = {str(p.relative_to(ROOT)) for p in project.paths.values() if p.name == "__init__.py"}
    files = {str(project.paths[module].relative_to(ROOT)) for module in loaded}
    assert files <= allowed | bare


def test_imports_are_followed_through_functions_registries_and_templates(tmp_path):
    """Only the function that is called counts, whatever else its file could import."""
    texts = {
        "data/__init__.py": '"""Data."""\n',
        "data/used.py": "def go():\n    from data import late\n    return late.x\n"
        "def other():\n    import data.never\n",
        "data/late.py": "x = 1\ny = 2\n",
        "data/never.py": "x = 1\ny = 2\n",
        "models/__init__.py": '"""Models."""\n',
        "models/kinds.py": "import importlib\nKINDS = {'a': 'models.a'}\n"
        "def kind(name):\n    return importlib.import_module(KINDS[name])\n",
        "models/a.py": "TEMPLATE = 'a.j2'\ndef run():\n    return TEMPLATE\n",
        "models/a.j2": '{% include "b.j2" %}',
        "models/b.j2": "",
        "models/c.j2": "",
        "pipelines/main.py": "from data import used\nfrom models.kinds import KINDS, kind\n"
        "def run():\n    used.go()\n    return kind('a')\ndef names():\n    return list(KINDS)\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    project = Project(tmp_path)
    expected = {"data/used.py", "data/late.py", "models/kinds.py", "models/a.py", "models/a.j2",
                "models/b.j2", "pipelines/main.py"}  # fmt: skip
    assert project.closure([("pipelines.main", "run")]) == expected
    naming = {"pipelines/main.py", "data/used.py", "models/kinds.py"}
    assert project.closure([("pipelines.main", "names")]) == naming
    assert stages.folded(expected, project.files) == [
        "data/late.py", "data/used.py", "models/a.j2", "models/a.py", "models/b.j2",
        "models/kinds.py", "pipelines/main.py",
    ]  # fmt: skip
    assert stages.folded({"export/forms/x.py"}, {"export/forms/x.py", "export/y.py"}) == [
        "export/forms"
    ]


def test_a_stage_that_nobody_described_is_named(project):
    with pytest.raises(stages.UserError, match="stage 'new'"):
        stages.code_of("new", project)
