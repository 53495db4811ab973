"""Feed-forward networks: integers answer as the floats did, and no observation overflows them."""

import copy
import json
import shutil

import numpy as np
import onnx
import pytest
from onnx import helper
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_networks import policy

from data.errors import UserError
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.entry import write_entry
from export.fixed import INT32_MAX, INT32_MIN, to_integers, to_values
from export.lower import NotLowerable, lower
from export.lower.network import lower_network
from export.onnx.run import predict
from export.onnx.source import source_from_onnx
from export.params import Options, VerifyParams
from export.source import source_of
from export.targets import emit
from export.toolchain.harness import build
from export.vectors import make_vectors
from export.verify import verify
from models.store import load, replace_directory

QUICK = VerifyParams(random=200)
STOPS = {"tol": 1.0, "n_iter_no_change": 40}
"""After so many epochs, whatever they brought."""
ACTIVATIONS = ("relu", "tanh", "logistic", "identity")
needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)


@pytest.fixture(scope="module")
def fitted(table):
    x, y = table
    made = {}
    for activation in ACTIVATIONS:
        network = MLPClassifier((8, 6), activation=activation, random_state=0, **STOPS)
        made[activation] = make_pipeline(StandardScaler(), network).fit(x, y)
    return made


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_integers_answer_as_the_estimator(activation, fitted, table, features):
    x, _ = table
    form = lower(fitted[activation], features)
    integers = to_integers(x, features)
    found = form.evaluate(integers)
    meant = fitted[activation].predict_proba(to_values(integers, features))[:, 1]
    assert np.abs(expit(found.scores / 2.0**form.places) - meant).max() < 1e-4
    clear = np.abs(meant - 0.5) > 1e-4
    assert (found.classes == (meant > 0.5))[clear].all()
    assert 0 < found.classes.mean() < 1


def test_calibration_and_threshold_move_into_the_cut(table, features):
    x, y = table
    network = make_pipeline(StandardScaler(), MLPClassifier((6,), random_state=1, **STOPS))
    model = CalibratedClassifierCV(network, ensemble=False, cv=2).fit(x, y)
    form = lower(model, features, threshold=0.7)
    integers = to_integers(x, features)
    meant = model.predict_proba(to_values(integers, features))[:, 1]
    clear = np.abs(meant - 0.7) > 1e-3
    assert (form.evaluate(integers).classes == (meant > 0.7))[clear].all()


def exactly(form, row):
    """The same with Python's integers, which never overflow."""
    values = [int(v) for v in row]
    for layer in form.layers[:-1]:
        sums = [
            b + sum(w * v for w, v in zip(ws, values, strict=True))
            for ws, b in zip(layer.weights, layer.biases, strict=True)
        ]
        assert all(-(2**63) <= s < 2**63 for s in sums)
        values = [max(-INT32_MAX, min(INT32_MAX, s >> layer.shift)) for s in sums]
        if layer.activation == "relu":
            values = [max(v, 0) for v in values]
        elif layer.activation != "identity":
            values = getattr(form.curve, layer.activation)(np.array(values)).tolist()
    last = form.layers[-1]
    sums = [
        b + sum(w * v for w, v in zip(ws, values, strict=True))
        for ws, b in zip(last.weights, last.biases, strict=True)
    ]
    assert all(-(2**63) <= s < 2**63 for s in sums)
    return sums


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_no_observation_overflows(activation, fitted, features):
    form = lower(fitted[activation], features)
    rng = np.random.default_rng(0)
    ends = rng.choice([INT32_MIN, INT32_MAX, 0, 1, -1], (200, 4))
    scores = form.evaluate(ends).scores
    assert [exactly(form, row)[0] for row in ends] == scores.tolist()


def test_round_trip_and_borders(fitted, features):
    form = lower(fitted["tanh"], features)
    assert loads(dumps(form), "x") == form
    x = make_vectors(form, np.zeros((0, 4), dtype=np.int64), 10, 0)
    assert x.counts["thresholds"] > 100
    classes = form.evaluate(x.x).classes
    assert 0 < classes.mean() < 1


def edited(document, path, value):
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(changed)


MALFORMED = {
    "an overflowing sum": (("layers", 0, "weights", 0), [2**31 - 1] * 4),
    "an overflowing bias": (("layers", 0, "biases", 0), 2**62 + 1),
    "a weight of 33 bits": (("layers", 0, "weights", 0, 0), 2**31),
    "a weight as float": (("layers", 0, "weights", 0, 0), 0.5),
    "a missing weight": (("layers", 1, "weights", 0), [1]),
    "a missing bias": (("layers", 0, "biases"), [1]),
    "an unknown activation": (("layers", 0, "activation"), "gelu"),
    "an activation that can't be hashed": (("layers", 0, "activation"), ["relu"]),
    "tanh without a table": (("curve",), None),
    "a tanh above one": (("curve", "entries", -1), 1 << 30),
    "a shift of the last layer": (("layers", -1, "shift"), 3),
    "a negative shift": (("layers", 0, "shift"), -1),
    "no layers": (("layers",), []),
    "no label": (("labels",), []),
    "three labels": (("labels",), ["a", "b", "c"]),
    "places as text": (("places",), "7"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_networks_are_refused(name, fitted, features):
    document = json.loads(dumps(lower(fitted["tanh"], features)))
    with pytest.raises(UserError, match="x: "):
        loads(edited(document, *MALFORMED[name]), "x")


@needs_compiler
@pytest.mark.parametrize("activation", ["relu", "logistic"])
def test_zoo_entry_verifies_with_every_target(activation, fitted, table, features, tmp_path):
    x, y = table
    meta = {"family": "smartsbd", "created_by": "the tests"}
    write_entry("net", fitted[activation], features, meta, x, {}, "# n\n", labels=y, zoo=tmp_path)
    source = source_of(load("net", tmp_path))
    targets = ["c", "mlp-c", "json", "python", "onnx", "table"]
    files = bundle_files(source, targets, Options(), "the tests")
    replace_directory(tmp_path / "out", files)
    report = verify(tmp_path / "out", QUICK)
    assert report["ok"], report
    found = {t["target"]: t for t in report["targets"]}
    assert found["mlp-c"]["vectors"] > 1000
    assert found["mlp-c"]["sanitized"]["findings"] == 0
    stated = json.loads(files["manifest.json"])["targets"]["mlp-c"]
    assert stated["disagreement"]["random"]["share"] < 0.002
    assert stated["drift"]["largest"] < 1e-4
    assert found["mlp-c"]["disagreement"]["stored"] == stated["disagreement"]["stored"]


@needs_compiler
def test_policy_from_onnx_verifies(tmp_path):
    path = tmp_path / "policy.onnx"
    path.write_bytes(policy())
    source = source_from_onnx(path)
    assert source.form.outputs == 3
    x = to_integers(source.values, source.features)
    scores = source.form.evaluate(x).scores / 2.0**source.form.places
    assert np.abs(scores - predict(path.read_bytes(), source.values, "x")).max() < 2e-3
    files = bundle_files(source, ["mlp-c", "python", "json", "onnx"], Options(), "the tests")
    replace_directory(tmp_path / "out", files)
    report = verify(tmp_path / "out", QUICK)
    assert report["ok"], report


@needs_compiler
def test_a_shifted_product_is_found(tmp_path):
    path = tmp_path / "policy.onnx"
    path.write_bytes(policy())
    source = source_from_onnx(path)
    text = emit("mlp-c", source, Options())["policy.h"].decode()
    weight = source.form.layers[1].weights[2][3]
    (tmp_path / "policy.h").write_text(text.replace(f" {weight},", f" {weight + 400000},", 1))
    program = build(tmp_path / "policy.h", "policy", tmp_path, 60, outputs=3)
    x = to_integers(source.values, source.features)
    assert (program.run(x, 60).scores != source.form.evaluate(x).scores).any()


def _changed(edit):
    model = onnx.load_from_string(policy())
    edit(model.graph)
    return model.SerializeToString()


def _rename(graph, op, to):
    next(n for n in graph.node if n.op_type == op).op_type = to


def _branch(graph):
    graph.node.insert(2, helper.make_node("Add", ["scaled", "features"], ["both"]))
    next(n for n in graph.node if n.op_type == "MatMul").input[0] = "both"


REFUSED = {
    "another activation": (lambda: _changed(lambda g: _rename(g, "Relu", "Elu")), "Elu"),
    "a branch": (lambda: _changed(_branch), "branches"),
    "no answer of ours": (lambda: _changed(lambda g: g.output.pop()), "no output"),
    "no ONNX": (lambda: b"\x00nothing", "ONNX"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_says_so(name, features):
    make, said = REFUSED[name]
    with pytest.raises(NotLowerable, match=said):
        lower_network(make(), features, ("down", "keep", "up"))


def test_an_undescribed_file_is_refused_with_one_line(tmp_path):
    model = onnx.load_from_string(policy())
    del model.metadata_props[:]
    (tmp_path / "p.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match="must hold feature_specs"):
        source_from_onnx(tmp_path / "p.onnx")
    with pytest.raises(UserError, match="readable ONNX"):
        source_from_onnx(tmp_path / "none.onnx")
