"""Zoo entries: whole, checked, and answering as the trained estimator did."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from small_models import ESTIMATORS

from data.errors import UserError
from export.document import loads
from export.entry import write_entry
from features.spec import Feature, schema_hash
from models import store
from pipelines.cli import main


@pytest.mark.parametrize("name", ESTIMATORS)
def test_entry_answers_as_the_estimator(name, zoo, table, features):
    x, y = table
    estimator = ESTIMATORS[name]().fit(x, y)
    meant = (
        estimator.predict_proba(x)[:, 1]
        if hasattr(estimator, "predict_proba")
        else expit(estimator.decision_function(x))
    )
    model = store.load(name, zoo)
    assert np.abs(model.predict_proba(x) - meant).max() < 1e-5
    assert (model.predict(x) == (meant > 0.5)).mean() > 0.999
    frame = pl.DataFrame(x, schema=[f.name for f in features]).with_columns(other=pl.lit("a"))
    assert (model.predict_proba(frame) == model.predict_proba(x)).all()
    assert model.features == features
    model.check_schema(features)


def test_meta_says_what_was_lost_to_integers(zoo):
    meta = store.load("tree", zoo).meta
    assert meta.kind == "tree"
    assert meta.quantization_error["rows"] == 1500
    assert (
        abs(meta.quantization_error["accuracy_float"] - meta.quantization_error["accuracy_integer"])
        < 0.01
    )
    assert set(meta.files) == {
        "model.json", "model.onnx", "vectors.json", "metrics.json", "card.md",
    }  # fmt: skip
    svm = store.load("svm", zoo).meta
    assert svm.kind == "SVC"
    assert "poly" in svm.no_form
    assert "model.json" not in svm.files


def test_a_changed_feature_definition_is_refused(zoo, features):
    model = store.load("tree", zoo)
    other = Feature(**{**features[0].__dict__, "scale": 10})
    with pytest.raises(UserError, match="train it again"):
        model.check_schema((other, *features[1:]))


def test_missing_columns_are_named(zoo):
    with pytest.raises(UserError, match="no column Min_RTT_Ratio, Losses"):
        store.load("tree", zoo).predict_proba({"RTT_ED": [1.0], "Correlation": [0.0]})


def test_no_rows_give_no_answers(zoo):
    assert store.load("tree", zoo).predict_proba(np.zeros((0, 4))).shape == (0,)


def test_unknown_name_gets_the_nearest(zoo):
    with pytest.raises(UserError, match="did you mean 'forest'"):
        store.load("forrest", zoo)


def test_an_entry_without_meta_is_no_unknown_name(zoo, tmp_path, capsys):
    (shutil.copytree(zoo / "tree", tmp_path / "tree") / "meta.json").unlink()
    with pytest.raises(UserError, match=r"tree/meta\.json: missing: restore it"):
        store.load("tree", tmp_path)
    with pytest.raises(UserError, match="unknown model 'bush': there is none yet"):
        store.load("bush", tmp_path)
    assert main(["zoo", "verify", "--zoo", str(tmp_path)]) == 1
    assert "tree/meta.json: missing" in capsys.readouterr().out
    assert main(["zoo", "list", "--zoo", str(tmp_path)]) == 2
    assert "tree/meta.json: missing" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../escaped", "a\x1b[2J", "a\n*/", ""])
def test_a_name_is_no_path_and_no_code(name, zoo, tmp_path):
    model = store.load("tree", zoo)
    files = {file: model.read(file) for file in model.meta.files}
    meta = model.meta.model_dump(exclude={"files", "checksum"}) | {"name": name}
    with pytest.raises(UserError, match="name"):
        store.save(tmp_path / "entry", meta, files)


def test_a_registry_address_is_shown_as_it_was_given(capsys):
    assert main(["zoo", "show", "registry:../../etc"]) == 2
    said = capsys.readouterr().err
    assert "registry:../../etc: NAME" in said
    assert "registry:registry:" not in said


@pytest.mark.parametrize("file", ["model.json", "model.onnx", "vectors.json", "card.md"])
def test_an_altered_file_is_refused(file, zoo, tmp_path):
    entry = shutil.copytree(zoo / "tree", tmp_path / "tree")
    with (entry / file).open("ab") as out:
        out.write(b" ")
    with pytest.raises(UserError, match=f"{file}: altered"):
        store.load(entry)
    assert main(["zoo", "verify", "--zoo", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.pop("family"),
        lambda m: m.update(famly="x"),
        lambda m: m.update(schema_hash="0" * 64),
        lambda m: m["files"].update({"../../etc/passwd": "0"}),
        lambda m: m["feature_specs"][0].update(scale="many"),
        lambda m: m["features"].reverse(),
    ],
)
def test_an_odd_meta_is_refused(edit, zoo, tmp_path):
    entry = shutil.copytree(zoo / "tree", tmp_path / "tree")
    meta = json.loads((entry / "meta.json").read_text())
    edit(meta)
    (entry / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(UserError):
        store.load(entry)


def test_an_interrupted_write_leaves_the_old_entry(zoo, tmp_path, monkeypatch):
    entry = shutil.copytree(zoo / "tree", tmp_path / "tree")
    before = store.load(entry).meta

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(store.Path, "write_bytes", fail)
    with pytest.raises(UserError, match="disk full"):
        store.save(entry, before.model_dump(exclude={"files"}), {"card.md": b"new"})
    monkeypatch.undo()
    assert store.load(entry).meta == before
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_writing_again_gives_the_same_bytes(zoo, table, features, tmp_path):
    x, y = table
    estimator = ESTIMATORS["tree"]().fit(x, y)
    meta = {"family": "smartsbd", "created_by": "the tests"}
    write_entry("tree", estimator, features, meta, x, {"n": 1}, "# tree\n", labels=y, zoo=tmp_path)
    for path in (zoo / "tree").iterdir():
        assert (tmp_path / "tree" / path.name).read_bytes() == path.read_bytes(), path.name


def test_wrong_meta_keys_get_the_nearest(table, features, tmp_path):
    x, y = table
    estimator = ESTIMATORS["tree"]().fit(x, y)
    with pytest.raises(UserError, match="did you mean 'family'"):
        write_entry("t", estimator, features, {"famly": "a"}, x, {}, "", zoo=tmp_path)
    assert not (tmp_path / "t").exists()


def test_rows_that_are_not_finite_are_left_out(table, features, tmp_path):
    x, y = table
    estimator = ESTIMATORS["tree"]().fit(x, y)
    holed = x[:50].copy()
    holed[::7, 1] = np.nan
    write_entry("t", estimator, features, {"family": "a"}, holed, {}, "", zoo=tmp_path)
    assert store.load("t", tmp_path).meta.quantization_error["rows"] == 42
    with pytest.raises(UserError, match="no row"):
        write_entry("t", estimator, features, {"family": "a"}, holed * np.nan, {}, "", zoo=tmp_path)


def test_command_line(zoo, capsys):
    assert main(["zoo", "list", "--zoo", str(zoo), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(ESTIMATORS)
    assert rows["tree"]["targets"] == ["bpf", "c", "json", "lut", "onnx", "python", "table"]
    assert rows["svm"]["targets"] == ["lut", "onnx"]
    assert main(["zoo", "show", "tree", "--zoo", str(zoo)]) == 0
    assert capsys.readouterr().out == "# tree\n"
    assert main(["zoo", "verify", "--zoo", str(zoo), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert all(row["vectors"] == 256 and not row["mismatches"] for row in report["models"])
    assert main(["zoo", "show", "tre", "--zoo", str(zoo)]) == 2
    assert "did you mean 'tree'?" in capsys.readouterr().err


def test_the_repositorys_own_entries_hold(capsys):
    assert main(["zoo", "verify"]) == 0, capsys.readouterr()
    for name in store.names():
        model = store.load(name)
        settings = model.meta.feature_settings
        assert schema_hash(model.features, settings) == model.meta.schema_hash
        if "model.json" in model.meta.files:
            assert loads(model.read("model.json"), name).features == model.features
