"""The core runs without any extra, and a command that needs one says which."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from pipelines.extras import EXTRAS
from tests.models import synthetic

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "data" / "raw" / "smartsbd-paper" / "shanghai"

# Whatever isn't of the core's distributions can't be imported, as in an environment without it.
ONLY = """
import json, sys
given = json.loads(sys.stdin.read())
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in given["absent"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from pipelines import cli
codes = [cli.main(words) for words in given["commands"]]
print(json.dumps([codes, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def core() -> set[str]:
    """Distributions that the core depends on, directly or not, by uv.lock."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    needs = {p["name"]: [d["name"] for d in p.get("dependencies", [])] for p in lock["package"]}
    found, todo = set(), ["cczoo"]
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += needs.get(name, [])
    return found


@pytest.fixture(scope="module")
def absent() -> list[str]:
    kept = core()
    return sorted(
        module
        for module, names in packages_distributions().items()
        if not {normal(name) for name in names} & kept and module not in sys.stdlib_module_names
    )


def run(absent: list[str], *commands: list[str]) -> tuple[list[int], set[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", ONLY], capture_output=True, text=True, cwd=ROOT,
        input=json.dumps({"absent": absent, "commands": commands}),
    )  # fmt: skip
    assert done.stdout, done.stderr
    codes, modules = json.loads(done.stdout.splitlines()[-1])
    return codes, set(modules), done.stderr


@pytest.mark.skipif(not LOGS.is_dir(), reason="data/raw isn't in this checkout")
def test_the_core_does_what_a_deployer_needs(absent, tmp_path):
    assert {"scipy", "sklearn", "torch", "mlflow", "ray", "matplotlib", "pandas"} <= set(absent)
    assert "pyarrow" in absent
    (tmp_path / "logs").mkdir()
    for log in sorted(LOGS.glob("*-sb-*"))[:1] + sorted(LOGS.glob("*-nsb-*"))[:1]:
        shutil.copy(log, tmp_path / "logs")
    events, table, bundle = (str(tmp_path / name) for name in ("events", "f.parquet", "bundle"))
    model = ["--model", "smartsbd-plus"]
    codes, modules, said = run(
        absent,
        ["ingest", str(tmp_path / "logs"), "--out", events, "--json"],
        ["features", "sbd", "--events", events, "--out", table, "--json"],
        ["predict", "sbd", *model, "--events", events, "--json"],
        ["evaluate", "sbd", *model, "--features", table, "--json"],
        [
            "evaluate",
            "cc",
            "--scenario",
            "nuwa-table1",
            "--cc",
            "cubic",
            "--seeds",
            "2",
            "--set",
            "duration_s=5",
            "--json",
        ],
        ["export", "smartsbd-dt", "-t", "c", "-t", "python", "-t", "onnx", "--out", bundle],
        ["verify", bundle, "--json"],
        ["zoo", "list", "--json"],
        ["zoo", "show", "smartsbd-dt"],
        ["zoo", "verify", "smartsbd-dt", "--json"],
    )
    assert codes == [0] * len(codes), said
    assert not modules & set(EXTRAS)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (
            ["train", "sbd", "all", "--features", "{}/f.parquet", "--out", "{}/o", "--no-register"],
            "train",
        ),
        (["export", "registry:small", "-t", "c", "--out", "{}/bundle"], "registry"),
    ],
)
def test_an_absent_extra_is_named_in_one_line(absent, command, extra, tmp_path, monkeypatch):
    synthetic.features(0, 4, 0, 0, 1).write_parquet(tmp_path / "f.parquet")
    # A database that isn't there is told of before anything is imported; an empty one isn't.
    (tmp_path / "empty.db").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/empty.db")
    codes, _, said = run(absent, [word.replace("{}", str(tmp_path)) for word in command])
    assert codes == [2]
    assert said.count("\n") == 1, said
    assert f"pip install 'cczoo[{extra}]'" in said


def test_every_library_has_its_extra():
    told = project()["optional-dependencies"]
    names = {
        extra: {normal(re.split(r"[\[<>=!~ ]", line)[0]) for line in lines}
        for extra, lines in told.items()
        if extra != "all"
    }
    every = {extra for extra in told if extra != "all"}
    assert set(re.findall(r"[a-z]+", told["all"][0].partition("[")[2])) == every
    distribution = {
        "ruamel": "ruamel-yaml",
        "sklearn": "scikit-learn",
        "xgboost": "xgboost-cpu",
    }
    for module, extra in EXTRAS.items():
        assert distribution.get(module, module) in names[extra]
    listed = {distribution.get(module, module) for module in EXTRAS}
    assert set().union(*names.values()) == listed
