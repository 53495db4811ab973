"""Trees with several scores on every target: more than two classes, actions and real values."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_forms import SPECS, several
from small_models import FEATURES
from test_targets_c import NOTHING, source_of

from data.errors import UserError
from export.bpf import build as bpf_build
from export.bpf.files import MAX_STACK_SCORES
from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.forms.trees import Trees
from export.lower import lower
from export.onnx.file import convert
from export.params import Options, VerifyParams
from export.render import label_names
from export.source import with_scale
from export.table_file import crc32c, read, write
from export.targets import emit, fitting
from export.toolchain.harness import SANITIZER_FLAGS, build
from export.vectors import make_vectors
from export.verify import verify
from features.spec import schema_hash
from models.output import Output
from models.store import replace_directory

SLOW = settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ACTIONS = tuple(f"rate {i}" for i in range(25))


def observations(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    low, high = (np.array([getattr(f, end) for f in FEATURES]) for end in ("low", "high"))
    return rng.uniform(low, high, (rows, len(FEATURES)))


def actions_of(x):
    """A policy with 25 actions, most of them rare."""
    return np.minimum((x[:, 0] / 1000) ** 2 * 13 + x[:, 1] / 20 * 13, 24).astype(int)


@settings(max_examples=60, deadline=None)
@given(form=several())
def test_a_document_keeps_all_of_a_form(form):
    assert loads(dumps(form), "model.json") == form


@settings(max_examples=60, deadline=None)
@given(form=several())
def test_a_table_file_keeps_all_of_a_form(form):
    schema = schema_hash(SPECS, {})
    content = write(form, schema)
    assert read(content, SPECS, form.labels, schema, "it") == form
    # A whole file of which one count, index or row isn't what the others say.
    for at, wrong in ((6, 2), (7, form.outputs + 1), (88, 0), (96, 63)):
        damaged = bytearray(content)
        damaged[at] = wrong
        damaged[-4:] = crc32c(bytes(damaged[:-4])).to_bytes(4, "little")
        with pytest.raises(UserError, match="not a table file"):
            read(bytes(damaged), SPECS, form.labels, schema, "it")


@settings(max_examples=40, deadline=None)
@given(form=several(), data=st.data())
def test_ties_go_to_the_first_label(form, data):
    x = make_vectors(form, NOTHING, 20, 3).x
    found = form.evaluate(x)
    scores = found.scores.reshape(len(x), form.outputs)
    for label, row in zip(found.classes, scores, strict=True):
        assert row[label] == row.max()
        assert (row[:label] < row.max()).all()


@pytest.mark.parametrize("compiler", ["gcc", "clang-14"])
@pytest.mark.parametrize("layout", ["if-else", "array"])
@SLOW
@given(form=several())
def test_compiled_c_answers_as_any_form(compiler, layout, monkeypatch, tmp_path, form):
    if shutil.which(compiler) is None:
        print(f"not compiled with {compiler}: it isn't there")
        pytest.skip(f"no {compiler}")
    monkeypatch.setenv("CC", compiler)
    (tmp_path / "a_model.h").write_bytes(
        emit("c", source_of(form), Options(layout=layout))["a_model.h"]
    )
    x = make_vectors(form, NOTHING, 100, 5).x
    meant = form.evaluate(x)
    for flags in (None, SANITIZER_FLAGS):
        made = (tmp_path / "a_model.h", "a_model", tmp_path, 120)
        found = build(*made, flags=flags, outputs=form.outputs).run(x, 60)
        assert (found.classes == meant.classes).all()
        assert (found.scores == meant.scores).all()


@SLOW
@given(form=several())
def test_the_python_module_answers_as_any_form(form):
    module = {}
    exec(emit("python", source_of(form), Options())["a_model.py"], module)
    x = make_vectors(form, NOTHING, 20, 5).x
    meant = form.evaluate(x)
    assert [module["classify"](row) for row in x.tolist()] == meant.classes.tolist()
    assert [module["score"](row) for row in x.tolist()] == meant.scores.tolist()


@SLOW
@given(form=several())
def test_the_table_files_reader_answers_as_any_form_and_takes_no_damaged_file(tmp_path, form):
    report = verify(exported(form, tmp_path / "bundle", target="table"), VerifyParams(random=50))
    assert report["ok"], report
    assert report["targets"][0]["damaged"]["accepted"] == 0
    assert report["targets"][0]["damaged"]["inverted"] > 100


def exported(form, directory, asked="both", target="bpf"):
    values = np.arange(8.0).reshape(2, 4)
    answers = np.zeros((2, form.outputs))
    output = with_scale(Output(kind="scores" if form.outputs == 1 else "classes"), form)
    source = replace(source_of(form), values=values, probability=answers, output=output)
    shutil.rmtree(directory, ignore_errors=True)
    replace_directory(directory, bundle_files(source, [target], Options(bpf=asked), "the tests"))
    return directory


@pytest.mark.kernel
@SLOW
@given(form=several())
def test_the_kernel_answers_as_any_form(tmp_path, form):
    if reason := bpf_build.why_not():
        print(f"eBPF not run in the kernel: {reason}")
        pytest.skip(reason)
    report = verify(exported(form, tmp_path / "bundle"), VerifyParams(random=100))
    assert report["ok"], report
    for part in report["targets"][0]["ways"].values():
        assert part["mismatches"] == 0
        assert "congestion_control" not in part


@pytest.mark.kernel
@pytest.mark.parametrize("labels", [1, 3])
def test_a_table_of_a_few_bytes_is_loaded_too(labels, tmp_path):
    """Constants of 4, 8, 16 or 32 bytes go to sections that libbpf doesn't load."""
    if reason := bpf_build.why_not():
        print(f"eBPF not run in the kernel: {reason}")
        pytest.skip(reason)
    from export.forms.nodes import Nodes

    stump = Nodes((0, -1, -1), (7, 0, 1), (2, 0, 0))
    rows = tuple(tuple(range(i, i + labels)) for i in (5, 9))
    form = Trees(SPECS, tuple(f"l{i}" for i in range(labels)), (stump,), (), rows, 16)
    report = verify(exported(form, tmp_path / "bundle", "if-else"), VerifyParams(random=10))
    assert report["ok"], report


@pytest.fixture(scope="module")
def policy():
    """A decision tree of 25 actions, as a distilled policy is one."""
    from sklearn.tree import DecisionTreeClassifier

    x = observations()
    return DecisionTreeClassifier(max_depth=9, random_state=0).fit(x, actions_of(x))


def test_a_tree_of_25_actions_decides_as_scikit_learn_on_every_integer(policy):
    form = lower(policy, FEATURES, ACTIONS)
    assert isinstance(form, Trees)
    x = make_vectors(form, NOTHING, 5000, 1).x[:5000]
    values = x / np.array([f.scale for f in FEATURES], dtype=np.float64)
    meant = policy.predict(values)
    assert len(set(meant)) > 15
    assert (form.evaluate(x).classes == meant).all()
    scores = form.evaluate(x).scores / 2.0**form.places
    seen = scores[:, policy.classes_]
    assert np.abs(seen - policy.predict_proba(values)).max() < 2.0**-form.places
    # An action that training never saw has no score.
    assert not np.delete(scores, policy.classes_, axis=1).any()


def test_a_lead_that_rounding_would_take_stays(features):
    from sklearn.tree import DecisionTreeClassifier

    y = np.repeat([0, 1, 2], [200_000, 200_001, 200_000])
    x = np.zeros((len(y), 4))
    tree = DecisionTreeClassifier().fit(x, y)
    form = lower(tree, features, ("a", "b", "c"))
    assert form.evaluate(np.zeros((1, 4), dtype=np.int64)).classes.tolist() == [1]


def test_classes_are_matched_by_name_or_index(policy):
    from sklearn.tree import DecisionTreeClassifier

    from export.lower import NotLowerable

    x = observations(200)
    named = DecisionTreeClassifier(max_depth=3).fit(x, np.where(x[:, 0] < 300, "b", "d"))
    form = lower(named, FEATURES, ("a", "b", "c", "d"))
    assert set(form.classes) == {1, 3}
    with pytest.raises(NotLowerable, match="aren't"):
        lower(named, FEATURES, ("a", "b", "c"))
    with pytest.raises(NotLowerable, match="indices of 5 labels"):
        lower(policy, FEATURES, ACTIONS[:5])


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_regression_tree_gives_its_real_values(outputs):
    from sklearn.tree import DecisionTreeRegressor

    x = observations()
    y = np.stack([x[:, i] * (-10.0) ** i for i in range(outputs)], axis=1)
    tree = DecisionTreeRegressor(max_depth=7).fit(x, y)
    form = lower(tree, FEATURES, tuple(f"q{i}" for i in range(outputs)))
    at = make_vectors(form, NOTHING, 2000, 1).x[:2000]
    values = at / np.array([f.scale for f in FEATURES], dtype=np.float64)
    meant = tree.predict(values).reshape(2000, outputs)
    found = form.evaluate(at).scores.reshape(2000, outputs) / 2.0**form.places
    assert np.abs(found - meant).max() <= 2.0**-form.places
    assert form.places >= 15


@pytest.mark.kernel
def test_a_bundle_of_25_actions_is_proved_on_every_target_that_fits(policy, tmp_path):
    form = lower(policy, FEATURES, ACTIONS)
    x = observations(64, 1)
    answers = np.zeros((64, 25))
    answers[:, policy.classes_] = policy.predict_proba(x)
    onnx = convert(policy, FEATURES, "policy", ACTIONS, {})
    source = replace(source_of(form), values=x, probability=answers, onnx=onnx)
    targets = [t for t in fitting(source) if t != "bpf" or bpf_build.why_not() is None]
    assert {"c", "json", "lut", "onnx", "python", "table"} <= set(targets)
    replace_directory(tmp_path / "bundle", bundle_files(source, targets, Options(), "the tests"))
    report = verify(tmp_path / "bundle", VerifyParams(random=500))
    assert report["ok"], json.dumps(report, indent=1)
    for target in report["targets"]:
        assert target["mismatches"] == 0
        assert target["vectors"] >= 64


def test_labels_that_would_share_a_constant_get_their_index(policy):
    labels = ("+1", "-1", *ACTIONS[2:])
    text = emit("c", source_of(lower(policy, FEATURES, labels)), Options())["a_model.h"].decode()
    assert "A_MODEL_C__1_0," in text
    assert "A_MODEL_C__1_1," in text


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("a", "b"), ["A", "B"]),
        (("+1", "-1", "c"), ["_1_0", "_1_1", "C"]),
        (("a b", "a_b", "a_b_0"), ["A_B_0_0", "A_B_1", "A_B_0_2"]),
        (("a_b_1", "a b", "a_b", "a_b_1_0"), ["A_B_1_0_0", "A_B_1_1", "A_B_2", "A_B_1_0_3"]),
    ],
)
def test_every_label_has_a_constant_of_its_own(labels, names):
    assert len(set(names)) == len(labels)
    assert label_names(labels) == names


def test_more_scores_than_a_bpf_stack_holds_are_code_or_refused():
    labels = tuple(f"a{i}" for i in range(MAX_STACK_SCORES + 1))
    wide = lower_random(labels, 1)
    assert "a_model.bpf.h" in emit("bpf", source_of(wide), Options())
    with pytest.raises(UserError, match="use bpf=if-else"):
        emit("bpf", source_of(wide), Options(bpf="map"))
    assert "bpf" not in fitting(source_of(lower_random(labels, 2)))


def lower_random(labels, trees):
    """Stumps with a row of its own in each leaf."""
    from export.forms.nodes import Nodes

    rows = tuple(tuple(range(i, i + len(labels))) for i in range(2))
    stump = Nodes((0, -1, -1), (7, 0, 1), (2, 0, 0))
    return Trees(SPECS, labels, (stump,) * trees, (), rows, 16)
