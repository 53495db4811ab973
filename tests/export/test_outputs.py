"""What a model's answers are, from an estimator or an ONNX file to a verified bundle."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import polars as pl
import pytest
import small_networks
from small_models import FEATURES
from test_export_verify import rewrite
from test_lower_several import FOUR, boosted, forest, four, lightgbm, network
from test_several import ACTIONS, actions_of, observations
from test_targets_c import source_of

from data.errors import UserError
from export.bundle.manifest import bundle_files, read_manifest
from export.entry import write_entry
from export.lower import NotLowerable, lower
from export.lower.tree_file import lower_file
from export.network_entry import write_network
from export.onnx.file import convert
from export.onnx.source import source_from_onnx
from export.params import Options, VerifyParams
from export.verify import verify
from features.grid import on_grid
from models.meta import Meta
from models.output import Output, State
from models.store import load, names, replace_directory
from pipelines.cli import main

UNITS = ("Mbit/s", "1", "ms")


@pytest.fixture(scope="module")
def x():
    """Values that integers stand for, as features are measured."""
    return on_grid(observations(2000), FEATURES)


def policy(x):
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=8, random_state=0).fit(x, actions_of(x))


def regression(x):
    from sklearn.ensemble import RandomForestRegressor

    y = np.stack([x[:, 0] / 10, x[:, 1] * x[:, 2], -x[:, 3]], axis=1)
    return RandomForestRegressor(5, max_depth=6, random_state=0).fit(x, y)


def entry(estimator, x, root, **meta):
    given = {"family": "test", "created_by": "the tests", **meta}
    return write_entry("a-model", estimator, FEATURES, given, x, {"n": 1}, "# a\n", zoo=root)


def proved(model, out, capsys, *targets):
    asked = [part for target in targets for part in ("-t", target)]
    assert main(["export", str(model), *asked, "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["verify", str(out), "--json"]) == 0, capsys.readouterr().out
    report = json.loads(capsys.readouterr().out)
    assert {target["target"] for target in report["targets"]} == set(targets)
    assert all(target["mismatches"] == 0 for target in report["targets"])
    return read_manifest((out / "manifest.json").read_bytes(), "it")


def test_an_entry_of_25_actions_is_kept_verified_and_exported(x, tmp_path, capsys):
    where = entry(policy(x), x, tmp_path, labels=ACTIONS, output={"kind": "action"})
    model = load(where)
    assert model.meta.output == Output(kind="action")
    assert (model.predict(x) == policy(x).predict(x)).all()
    assert model.meta.quantization_error["disagreements"] <= 3
    assert main(["zoo", "verify", "a-model", "--zoo", str(tmp_path)]) == 0
    capsys.readouterr()
    targets = ("c", "json", "lut", "onnx", "python", "table")
    manifest = proved(where, tmp_path / "out", capsys, *targets)
    assert manifest["output"] == {"kind": "action", "units": [], "scale": None}
    assert len(manifest["labels"]) == 25


def test_smartsbds_commands_refuse_a_model_without_a_probability(x, tmp_path, capsys):
    where = entry(policy(x), x, tmp_path, labels=ACTIONS, output={"kind": "action"})
    columns = {f.name: x[:30, i] for i, f in enumerate(FEATURES)}
    named = {"connection": ["a"] * 30, "window": range(30), "label": ["SB", "NSB"] * 15}
    table = tmp_path / "table.parquet"
    pl.DataFrame({**named, **columns}).write_parquet(table)
    for command in ("evaluate", "predict"):
        capsys.readouterr()
        assert main([command, "sbd", "--model", str(where), "--features", str(table)]) == 2
        assert "give a model of two classes" in capsys.readouterr().err


def test_an_entry_of_real_values_has_units_and_a_scale(x, tmp_path, capsys):
    labels = ("rate", "gain", "delay")
    output = {"kind": "scores", "units": UNITS}
    where = entry(regression(x), x, tmp_path, labels=labels, output=output)
    model = load(where)
    found = model.meta.output
    assert found.units == UNITS
    assert found.scale >= 1 << 16
    assert model.meta.quantization_error["disagreements"] == 0
    assert model.meta.quantization_error["largest_error"] < 1e-5
    assert np.allclose(model.answers(x[:50]), regression(x).predict(x[:50]), rtol=1e-4, atol=1e-3)
    assert main(["zoo", "verify", "a-model", "--zoo", str(tmp_path)]) == 0
    capsys.readouterr()
    manifest = proved(where, tmp_path / "out", capsys, "c", "json", "onnx", "python", "table")
    assert manifest["output"]["units"] == list(UNITS)
    header = (tmp_path / "out" / "a_model.h").read_text()
    assert "A_MODEL_C_RATE, /* Mbit/s */" in header
    assert f"#define A_MODEL_PLACES {found.scale.bit_length() - 1}" in header
    rewrite(tmp_path / "out", lambda m: m["output"].update(scale=7))
    assert main(["verify", str(tmp_path / "out"), "--json"]) == 1
    assert "output.scale" in " ".join(json.loads(capsys.readouterr().out)["problems"])


@pytest.mark.parametrize(
    "make", [policy, forest, boosted, lightgbm, network], ids=lambda make: make.__name__
)
def test_an_onnx_file_alone_is_enough(make, x, tmp_path, capsys):
    labels = ACTIONS if make is policy else FOUR
    estimator = make(x) if make is policy else make(x, four(x))
    path = tmp_path / "learned.onnx"
    path.write_bytes(convert(estimator, FEATURES, "learned", labels, {}))
    source = source_from_onnx(path)
    if make is network:
        # Its converter's graph isn't one chain of layers.
        assert source.form is None
        return
    assert source.form is not None, source.no_form
    answers = lower(estimator, FEATURES, labels)
    k = np.random.default_rng(2).integers(0, 10**6, (3000, 4))
    assert (source.form.evaluate(k).classes != answers.evaluate(k).classes).mean() <= 0.001
    proved(path, tmp_path / "out", capsys, "c", "onnx", "json")


@pytest.mark.parametrize(
    ("attribute", "index", "wrong"),
    [
        ("nodes_truenodeids", 0, 0),
        ("nodes_falsenodeids", 0, 10**6),
        ("nodes_featureids", 0, 77),
        ("nodes_featureids", 0, -1),
        ("class_ids", 0, 99),
        ("class_ids", 0, -1),
        ("class_nodeids", 0, 10**6),
    ],
)
def test_trees_that_arent_trees_have_no_form(attribute, index, wrong, x):
    content = convert(policy(x), FEATURES, "learned", ACTIONS, {})
    model = onnx.load_from_string(content)
    (node,) = (n for n in model.graph.node if n.op_type == "TreeEnsembleClassifier")
    (one,) = (a for a in node.attribute if a.name == attribute)
    one.ints[index] = wrong
    with pytest.raises(NotLowerable):
        lower_file(model.SerializeToString(), FEATURES, ACTIONS, 0.5, "action")


def test_reading_trees_of_a_file_takes_no_library_that_trained_them():
    code = "import export.onnx.source, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_onnx_file_of_real_values_says_so_in_its_metadata(x, tmp_path, capsys):
    said = {"output": json.dumps({"kind": "scores", "units": UNITS})}
    path = tmp_path / "learned.onnx"
    labels = ("rate", "gain", "delay")
    path.write_bytes(convert(regression(x), FEATURES, "learned", labels, {}, said))
    source = source_from_onnx(path)
    assert source.form is not None, source.no_form
    assert source.output.units == UNITS
    manifest = proved(path, tmp_path / "out", capsys, "c", "onnx", "python")
    assert manifest["output"]["scale"] == source.output.scale


@pytest.mark.parametrize("make", [small_networks.policy, lambda: small_networks.recurrent("LSTM")])
def test_a_networks_file_is_kept_as_an_entry(make, tmp_path, capsys):
    meta = {"family": "test", "created_by": "the tests"}
    where = write_network("a-policy", make(), meta, {"n": 1}, "# a\n", zoo=tmp_path)
    model = load(where)
    recurrent = model.meta.kind == "lstm"
    assert [s.returned for s in model.meta.states] == (["h_out", "c_out"] if recurrent else [])
    assert all(state.width == 8 for state in model.meta.states)
    assert model.meta.labels == (("NSB", "SB") if recurrent else small_networks.ACTIONS)
    assert main(["zoo", "verify", "a-policy", "--zoo", str(tmp_path)]) == 0
    capsys.readouterr()
    proved(where, tmp_path / "out", capsys, "mlp-c", "onnx", "json")


def test_a_networks_file_of_real_values_tells_its_largest_error(x, tmp_path):
    said = {"output": json.dumps({"kind": "scores", "units": UNITS})}
    content = convert(regression(x), FEATURES, "learned", ("rate", "gain", "delay"), {}, said)
    where = write_network(
        "learned", content, {"family": "test"}, {}, "# l\n", vectors=x, zoo=tmp_path
    )
    told = load(where).meta.quantization_error
    assert (told["rows"], told["disagreements"]) == (256, 0)
    assert 0 < told["largest_error"] < 1e-5


def test_released_entries_say_nothing_of_what_they_had_no_need_to():
    for name in names():
        directory = load(name).directory
        stored = json.loads((directory / "meta.json").read_text())
        meta = load(name).meta
        for later, plain in (("output", Output()), ("states", ())):
            assert later not in stored or getattr(meta, later) != plain
        assert meta.document().keys() - {"feature_settings"} == stored.keys() - {"feature_settings"}


def test_what_doesnt_fit_together_is_refused(x, tmp_path):
    assert Output(kind="action").problem(("a",)).startswith("labels: one label")
    assert "differ" in Output().problem(("a", "a"))
    assert "output.units" in Output(units=("ms",)).problem(("a", "b"))
    assert "output.scale" in Output(scale=4).problem(("a", "b"))
    assert not Output(kind="scores", units=("ms",)).problem(("a",))
    with pytest.raises(UserError, match="a regressor's answers are scores"):
        entry(regression(x), x, tmp_path, labels=("a", "b", "c"), output={"kind": "action"})
    with pytest.raises(UserError, match="output"):
        Meta.parse(
            {
                **dict.fromkeys(("kind", "family", "schema_hash"), ""),
                **{"name": "m", "features": [], "feature_specs": [], "labels": ["a"]},
            },
            "meta.json",
        )


def test_states_are_kept_in_the_meta():
    given = {
        **dict.fromkeys(("kind", "family", "schema_hash"), ""),
        **{"name": "m", "features": [], "feature_specs": []},
        "states": [{"given": "h_in", "returned": "h_out", "width": 8}],
    }
    meta = Meta.parse(given, "meta.json")
    assert meta.states == (State(given="h_in", returned="h_out", width=8),)
    assert meta.document()["states"] == given["states"]


def lightgbm_regression(x):
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1).fit(x, x[:, 0])


@pytest.mark.parametrize(
    ("make", "labels"),
    [(regression, ("a",)), (regression, tuple("abcdef")), (lightgbm_regression, ("a", "b"))],
    ids=["three-for-one", "three-for-six", "one-for-two"],
)
def test_a_regressor_has_one_label_per_output(make, labels, x, tmp_path):
    estimator = make(x)
    with pytest.raises(UserError, match=r"'a-model'.*give one label per output"):
        entry(estimator, x, tmp_path, labels=labels)
    assert not any(tmp_path.iterdir())
    with pytest.raises(UserError, match=r"'learned'.*give one label per output"):
        convert(estimator, FEATURES, "learned", labels, {})


@pytest.mark.parametrize("size", [1e-7, 1e-4, 1e6])
def test_real_scores_of_any_size_are_kept_and_verified(size, x, tmp_path, capsys):
    from sklearn.tree import DecisionTreeRegressor

    made = DecisionTreeRegressor(max_depth=5).fit(x, size * x[:, 0] / x[:, 0].max())
    where = entry(made, x, tmp_path, labels=("rate",))
    stored = np.array(json.loads((where / "vectors.json").read_text())["probability"])
    meant = made.predict(json.loads((where / "vectors.json").read_text())["values"])
    assert (np.abs(stored[:, 0] - meant) <= 1e-6 * np.abs(meant)).all()
    assert load(where).meta.quantization_error["float_error"] < 1e-5
    assert main(["zoo", "verify", "a-model", "--zoo", str(tmp_path)]) == 0
    capsys.readouterr()
    proved(where, tmp_path / "out", capsys, "c", "onnx")


def test_small_real_scores_that_are_wrong_are_found(x, tmp_path):
    from sklearn.tree import DecisionTreeRegressor

    def made(size):
        return DecisionTreeRegressor(max_depth=5).fit(x, size * x[:, 0] / x[:, 0].max())

    right, wrong = made(1e-7), made(1.005e-7)
    source = replace(
        source_of(lower(right, FEATURES, ("rate",))),
        onnx=convert(wrong, FEATURES, "a_model", ("rate",), {}),
        values=x[:64],
        probability=right.predict(x[:64])[:, None],
        output=Output(kind="scores"),
    )
    files = bundle_files(source, ["onnx"], Options(), "the tests")
    replace_directory(tmp_path / "out", files)
    report = verify(tmp_path / "out", VerifyParams(random=10))
    assert not report["ok"]
    assert report["targets"][0]["mismatches"] > 60, report
