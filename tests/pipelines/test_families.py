"""A family of models is one module and one line: everything else asks it, and knows no name."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from features.sbd import FAMILIES as WINDOWS
from features.sbd import SERIES
from models import families, store
from models.sbd import family as sbd
from tests.families import paced

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def house(tmp_path_factory, empty_store):
    """A folder with a store of its own, data of the family, and ``cczoo`` that knows its line."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "mlruns").mkdir()
    shutil.copy(empty_store, folder / "mlruns" / "mlflow.db")
    (folder / "data" / "processed").mkdir(parents=True)
    paced.write_table(folder / paced.data("paced"))
    environment = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    environment["PYTHONPATH"] = str(ROOT)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.families.command"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def cczoo(*words, code=0):
        process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        process.stdin.flush()
        status, out, err = json.loads(process.stdout.readline())
        assert status == code, err + out
        return json.loads(out) if "--json" in words else out + err

    cczoo.folder = folder
    yield cczoo
    process.stdin.close()
    process.wait()


@pytest.fixture(scope="module")
def trained(house):
    """The first version, of a shallow tree."""
    (house.folder / "shallow.yaml").write_text("models: {paced: {depth: 1}}")
    report = house("train", "paced", "--params", "shallow.yaml", "--no-register", "--json")
    return Path(report["entries"]["paced-depth1"])


def test_it_is_trained_and_its_entry_holds_what_every_entry_holds(house, trained):
    entry = store.load(house.folder / trained)
    assert entry.meta.labels == ("step",)
    assert entry.meta.output.kind == "scores"
    assert {"model.onnx", "model.json", "test.json", "card.md"} <= entry.meta.files.keys()
    assert "one action" not in entry.read("card.md").decode()
    assert house("train", "paced", "--help").count("--data") > 0


def test_it_is_evaluated_and_verified(house, trained):
    report = house("evaluate", "paced", "--model", trained, "--json")
    assert report["figures"]["worth"]["of"] == "steps"
    assert -8 < report["figures"]["worth"]["mean"] < -0.5
    (found,) = house("zoo", "verify", trained, "--json")["models"]
    assert found["ok"]
    assert found["evaluation"].keys() == {"model.onnx", "model.json"}
    altered = house.folder / "altered"
    shutil.copytree(house.folder / trained, altered)
    test = json.loads((altered / "test.json").read_text())
    test["step"] = [-one for one in test["step"]]
    meta = store.load(altered).meta.model_dump(mode="json", exclude={"files", "checksum"})
    files = {name: (altered / name).read_bytes() for name in store.load(altered).meta.files}
    store.save(altered, meta, {**files, "test.json": json.dumps(test).encode()})
    (found,) = house("zoo", "verify", altered, "--json", code=1)["models"]
    assert "outside the stored" in found["problems"][0]


def test_it_is_exported_and_every_target_answers_as_the_model(house, trained):
    targets = [word for target in ("c", "json", "python", "onnx") for word in ("-t", target)]
    house("export", trained, *targets, "--out", "build/paced")
    report = house("verify", "build/paced", "--json", "--random", 100)
    assert {one["target"] for one in report["targets"]} == {"c", "json", "python", "onnx"}
    assert all(one["mismatches"] == 0 for one in report["targets"])


def test_it_is_registered_gated_and_promoted(house, trained):
    gates = "promotion: {gates: {test-set: {}, groups: {}, certificate: {targets: [json]}}}"
    (house.folder / "gates.yaml").write_text(gates)
    words = ("--params", "gates.yaml", "--json")
    deep = "models: {paced: {depth: 6}}"
    (house.folder / "deep.yaml").write_text(deep)
    # Two versions under one name, as two trainings of one model have.
    for version, depth in enumerate((1, 6), start=1):
        (house.folder / "settings.yaml").write_text(f"models: {{paced: {{depth: {depth}}}}}")
        house("train", "paced", "--params", "settings.yaml", "--zoo", "other", "--no-register")
        meta = store.load(house.folder / f"other/paced-depth{depth}").meta
        files = {
            f: (house.folder / f"other/paced-depth{depth}/{f}").read_bytes() for f in meta.files
        }
        plain = meta.model_dump(mode="json", exclude={"files", "checksum"})
        store.save(house.folder / "zoo" / "paced", plain | {"name": "paced"}, files)
        (house.folder / "headline.json").write_text(json.dumps({"depth": depth}))
        said = house(
            "register", "--features", paced.data("paced"), "--headline", "headline.json",
            "--params", "settings.yaml", "--zoo", "zoo",
        )  # fmt: skip
        assert f'"paced": "{version}"' in said
        report = house("promote", "paced", *words)
        assert report["ok"], report
    assert report["gates"]["test-set"]["evidence"]["steps"]["difference"]["low"] > 0
    assert report["gates"]["groups"]["evidence"].keys() == {"path=clean", "path=lossy"}
    assert report["test_set"]["counted"] == "steps"
    # Back to the shallow tree: it is worse by more than the margin.
    refused = house("promote", "paced/1", *words, code=1)
    assert refused["problems"][0].startswith("test-set: steps -")


def test_it_is_reported(house, trained):
    house("report", "--out", "reports/index.html")
    page = (house.folder / "reports" / "index.html").read_text()
    section = page.split('<h2 id="paced">')[1].split("<h2 ")[0]
    assert "a controller with one action" in section
    assert "paced-depth1" in section


def test_its_settings_are_checked_with_all_others(house):
    (house.folder / "wrong.yaml").write_text("models: {paced: {dept: 3}}")
    said = house("train", "paced", "--params", "wrong.yaml", code=2)
    assert "models.paced.dept: unknown key, did you mean 'depth'?" in said


def test_a_model_of_no_family_is_refused_by_name(house, trained):
    entry = store.load(house.folder / trained)
    with pytest.raises(families.UserError, match="no family of models observes 'paced'"):
        families.family_of(entry.meta)


def test_every_line_has_what_the_house_asks_for():
    asked = {name for name in vars(families.Family) if not name.startswith("_")}
    for name in families.FAMILIES:
        module = families.family(name)
        assert [one for one in sorted(asked) if not hasattr(module, one)] == []
        families.settings_of(name)()
    assert asked <= vars(paced).keys()
    observed = [one for line in families.FAMILIES.values() for one in line.observes]
    assert len(observed) == len({*observed})
    assert {*WINDOWS, *SERIES} == {*families.FAMILIES["sbd"].observes}
    assert vars(sbd)["paired"]


def test_nothing_in_pipelines_names_the_throw_away_family():
    for path in (ROOT / "pipelines").rglob("*.py"):
        names = {
            n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)
        }
        assert "paced" not in names
