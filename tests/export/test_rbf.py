"""Support vector machines with Gaussian kernel: exponential, form, lowering and targets."""

import json
import math
import os
import shutil
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forms import SPECS
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from data.errors import UserError
from export.document import dumps, loads
from export.exp_table import ONE_BITS, exp2_negative, exp2_table
from export.fixed import INT32_MAX, INT32_MIN, limits, to_integers, to_values
from export.forms.rbf import LIMIT, Input, Rbf, boundary_vectors
from export.lower import NotLowerable, lower
from export.onnx.file import convert
from export.onnx.svm import convert_svc
from export.params import Options, VerifyParams
from export.source import Source
from export.targets import emit
from export.toolchain.harness import SANITIZER_FLAGS, build
from export.vectors import make_vectors

needs_compiler = pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="no C compiler on this machine"
)
NOTHING = np.zeros((0, 4), dtype=np.int64)


def exactly(form, row):
    """The form's score in Python's own unbounded integers, as its docstrings define it."""
    total = form.bias
    at = [
        max(-LIMIT, min(LIMIT, (row[i.feature] * i.multiplier + i.offset) >> i.shift))
        for i in form.inputs
    ]
    steps = len(form.table) - 1
    for vector, weight in zip(form.vectors, form.weights, strict=True):
        t = sum((a - b) ** 2 for a, b in zip(at, vector, strict=True))
        whole, part = divmod(t, 1 << 2 * form.places)
        rest = part * steps * 65536 >> 2 * form.places
        left, right = form.table[rest >> 16], form.table[(rest >> 16) + 1]
        value = left - ((left - right) * (rest & 0xFFFF) >> 16)
        total += weight * (value >> whole)
    return total


coordinates = st.sampled_from([-LIMIT, LIMIT, 0]) | st.integers(-LIMIT, LIMIT)
multipliers = st.sampled_from([INT32_MIN + 1, INT32_MAX, 0]) | st.integers(-(2**20), 2**20)
inputs = st.builds(
    Input,
    st.integers(0, 3),
    multipliers,
    st.sampled_from([-(2**61), 2**61]) | st.integers(-(2**40), 2**40),
    st.integers(0, 34),
)


@st.composite
def machines(draw):
    columns = draw(st.lists(inputs, min_size=1, max_size=4))
    point = st.lists(coordinates, min_size=len(columns), max_size=len(columns)).map(tuple)
    vectors = draw(st.lists(point, min_size=1, max_size=6))
    weight = st.sampled_from([INT32_MIN + 1, INT32_MAX]) | st.integers(-1000, 1000)
    weights = draw(st.lists(weight, min_size=len(vectors), max_size=len(vectors)))
    bits = draw(st.integers(0, 11))
    return Rbf(
        SPECS, ("NSB", "SB"), draw(st.integers(-(2**40), 2**40)), tuple(columns),
        draw(st.integers((bits + 17) // 2, 27)), exp2_table(bits), tuple(vectors), tuple(weights),
        draw(st.sampled_from([-(2**60), 2**60, 0])), 30,
    )  # fmt: skip


@pytest.fixture(scope="module")
def machine(table, features):
    x, y = table
    estimator = make_pipeline(StandardScaler(), SVC(gamma=0.5, C=10.0)).fit(x, y)
    return estimator, lower(estimator, features)


@pytest.mark.parametrize("bits", [0, 6, 8, 10, 12])
def test_exponential_is_as_exact_as_its_table_promises(bits):
    places = 40
    t = np.random.default_rng(0).integers(0, 1 << places, 200_000)
    t = np.concatenate([t, [0, 1, (1 << places) - 1, 1 << (places - bits)]])
    found = exp2_negative(t, places, np.array(exp2_table(bits)))
    error = found / 2.0**ONE_BITS / np.exp2(-(t / 2.0**places)) - 1
    rounding = 1.5 / 2**25
    assert error.min() >= -rounding
    chord = (math.log(2) / 2**bits) ** 2 / 8 * 2 ** (0.5**bits)
    assert error.max() <= chord + rounding + math.log(2) / 2 ** (bits + 16)


def test_exponential_falls_to_0_and_stays_there():
    places = 32
    whole = np.arange(64, dtype=np.int64)[:30] << places
    table = np.array(exp2_table(10))
    assert exp2_negative(whole, places, table).tolist() == [1 << 26 >> i for i in range(30)]
    assert (exp2_negative(np.array([27 << places, 2**62]), places, table) == 0).all()
    t = np.sort(np.random.default_rng(1).integers(0, 30 << places, 100_000))
    assert (np.diff(exp2_negative(t, places, table)) <= 0).all()


@settings(max_examples=60, deadline=None)
@given(machines(), st.integers(0, 2**32 - 1))
def test_evaluation_is_exact_for_any_32_bit_observation(form, seed):
    x = make_vectors(form, NOTHING, 10, seed).x
    x = x[np.random.default_rng(seed).integers(len(x), size=40)]
    found = form.evaluate(x)
    assert found.scores.tolist() == [exactly(form, row) for row in x.tolist()]
    assert (found.classes == (found.scores > form.decision_threshold)).all()


@settings(max_examples=40, deadline=None)
@given(machines())
def test_round_trip(form):
    assert loads(dumps(form), "x") == form


MALFORMED = {
    "no inputs": {"inputs": []},
    "an input of three": {"inputs": [[0, 1, 2]]},
    "a feature out of range": {"inputs": [[4, 1, 0, 0]]},
    "a shift of 64": {"inputs": [[0, 1, 0, 64]]},
    "an overflowing coordinate": {"inputs": [[0, 2**31 - 1, 2**62, 0]]},
    "an empty table": {"table": []},
    "a table of one": {"table": [1]},
    "a table of 4": {"table": [9, 8, 7, 6]},
    "a rising table": {"table": [1, 2]},
    "a table above one": {"table": [2**27, 1]},
    "a table as text": {"table": "no"},
    "too few places": {"places": 7},
    "too many places": {"places": 28},
    "no vectors": {"vectors": [], "weights": []},
    "a weight too few": {"weights": []},
    "a coordinate beyond the limit": {"vectors": [[LIMIT + 1, 0]]},
    "a coordinate too few": {"vectors": [[0]]},
    "a coordinate as float": {"vectors": [[0.5, 0]]},
    "a sum that could overflow": {"vectors": [[0, 0]] * 65, "weights": [2**31 - 1] * 65},
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_is_refused_with_one_line(name):
    good = Rbf(
        SPECS, ("NSB", "SB"), 0, (Input(0, 1, 0, 0), Input(2, 1, 0, 0)), 20, exp2_table(4),
        ((0, 0),), (5,), 0, 30,
    )  # fmt: skip
    document = json.loads(dumps(good))
    assert loads(json.dumps(document), "model.json") == good
    with pytest.raises(UserError, match=r"^model\.json: .*\S$"):
        loads(json.dumps(document | MALFORMED[name]), "model.json")


LOWERED = {
    "scaled": lambda: make_pipeline(StandardScaler(), SVC(gamma=0.5)),
    "large C": lambda: make_pipeline(StandardScaler(), SVC(gamma=0.25, C=1000.0, max_iter=5000)),
    "default gamma": lambda: make_pipeline(MinMaxScaler(), SVC()),
    "unscaled": lambda: SVC(gamma=1e-5),
    "selected": lambda: make_pipeline(StandardScaler(), SelectKBest(k=2), SVC(gamma=2.0)),
    "narrow": lambda: make_pipeline(StandardScaler(), SVC(gamma=200.0)),
    "platt": lambda: CalibratedClassifierCV(
        make_pipeline(StandardScaler(), SVC(gamma=0.5)), ensemble=False
    ),
    "isotonic": lambda: CalibratedClassifierCV(
        make_pipeline(StandardScaler(), SVC(gamma=0.5)), ensemble=False, method="isotonic"
    ),
}


@pytest.mark.parametrize("name", LOWERED)
def test_machine_answers_as_scikit_learn(name, table, features):
    x, y = table
    with warnings.catch_warnings(action="ignore"):
        estimator = LOWERED[name]().fit(x, y)
    form = lower(estimator, features)
    assert form.kind == "rbf"
    low, high = limits(features)
    random = np.random.default_rng(1).integers(low, high, (3000, 4), endpoint=True)
    k = np.concatenate([to_integers(x, features), random])
    values = to_values(k, features)
    found = form.evaluate(k)
    if hasattr(estimator, "predict_proba"):
        meant = estimator.predict_proba(values)[:, 1] > 0.5
    else:
        decision = estimator.decision_function(values)
        meant = decision > 0
        scale = 1 + np.abs(estimator[-1].dual_coef_).max() if name != "unscaled" else 2
        assert np.abs(found.scores / 2.0**form.shift - decision).max() < 1e-4 * scale
    assert (found.classes != meant).sum() <= 2
    assert 0 < found.classes.mean() < 1, "both classes must occur, or agreement means nothing"


@pytest.mark.parametrize("threshold", [0.2, 0.8])
def test_threshold_of_decision_moves_into_the_cut(threshold, table, features, machine):
    estimator, _ = machine
    form = lower(estimator, features, threshold=threshold)
    k = to_integers(table[0], features)
    decision = estimator.decision_function(to_values(k, features))
    meant = 1 / (1 + np.exp(-decision)) > threshold
    assert (form.evaluate(k).classes != meant).sum() <= 1
    assert form.decision_threshold / 2.0**form.shift == pytest.approx(
        math.log(threshold / (1 - threshold))
    )


def test_own_probabilities_are_refused(table, features):
    x, y = table
    estimator = SVC().fit(x[:200], y[:200])
    # As a fit with it would leave the machine; scikit-learn 1.11 has no such argument any more.
    estimator.probability = True
    with pytest.raises(NotLowerable, match="CalibratedClassifierCV"):
        lower(estimator, features)
    with pytest.raises(UserError, match="CalibratedClassifierCV"):
        convert_svc(None, SimpleNamespace(raw_operator=estimator), None)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_a_file_answers_as_the_machine_without_what_is_going_away(kernel, table, features):
    import onnxruntime

    x, y = table
    for machine in (SVC(kernel=kernel), CalibratedClassifierCV(SVC(kernel=kernel), ensemble=False)):
        estimator = make_pipeline(StandardScaler(), machine).fit(x, y)
        # skl2onnx's own converter warns here: it reads what scikit-learn 1.11 has no longer.
        with warnings.catch_warnings(action="error", category=FutureWarning):
            file = convert(estimator, features, "machine", ("NSB", "SB"), {})
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"features": x.astype(np.float32)})
        if hasattr(estimator, "predict_proba"):
            meant = estimator.predict_proba(x)[:, 1]
        else:
            meant = 1 / (1 + np.exp(-estimator.decision_function(x)))
        assert np.abs(found - meant).max() < 1e-4


def test_a_file_is_the_same_in_every_process():
    script = """
import hashlib
import numpy as np
from sklearn.svm import SVC
from export.onnx.file import convert
from features.sbd import features_of
x = np.arange(40.0).reshape(20, 2)
file = convert(SVC().fit(x, x[:, 0] > 20), features_of("smartsbd")[:2], "m", ("NSB", "SB"), {})
print(hashlib.sha256(file).hexdigest())
"""
    # Sets of names are in another order under each of these seeds.
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("0", "3")
    }  # fmt: skip
    assert len(hashes) == 1


def test_coordinates_that_integers_cannot_carry_are_refused(table, features):
    x, y = table
    with pytest.raises(NotLowerable, match="smaller gamma"):
        lower(SVC(gamma=1e4).fit(x, y), features)


def test_equal_support_vectors_become_one(features):
    x = np.tile([[100.0, 1.0, 0.0, 5.0], [900.0, 9.0, 0.5, 400.0]], (20, 1))
    estimator = SVC(gamma=1e-4, C=0.5).fit(x, np.tile([0, 1], 20))
    form = lower(estimator, features)
    assert len(estimator.support_vectors_) > 2
    assert len(form.vectors) == 2
    assert form.evaluate(to_integers(x, features)).classes.tolist() == [0, 1] * 20


def test_near_finds_both_sides_of_the_cut_and_of_every_limit(machine):
    _, form = machine
    rows = boundary_vectors(form, np.random.default_rng(4))
    half = len(rows["boundary"]) // 2
    below, above = rows["boundary"][:half], rows["boundary"][half:]
    assert half > 100
    assert np.abs(below - above).max() <= 1
    assert (form.evaluate(below).classes == 0).all()
    assert (form.evaluate(above).classes == 1).all()
    at = form.coordinates(rows["saturation"])
    assert (np.abs(at) == LIMIT).any(axis=0).all()
    assert ((np.abs(at) < LIMIT) & (np.abs(at) > LIMIT * 0.999)).any()
    kernels = form.kernels(form.coordinates(rows["reach"])).max(axis=1)
    assert (kernels == 0).any()
    assert ((kernels > 0) & (kernels < 1 << 10)).any()


def source_of(form):
    return Source(
        "a model", "1", "test", form.kind, form.features, form.labels, 0.5, form, "", b"",
        np.zeros((0, 4)), np.zeros(0),
    )  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("flags", [None, SANITIZER_FLAGS], ids=["kernel", "sanitizers"])
@settings(max_examples=4, deadline=None)
@given(form=machines())
def test_any_machine_compiles_without_a_warning_and_answers_the_same(flags, tmp_path_factory, form):
    work = tmp_path_factory.mktemp("c")
    (work / "a_model.h").write_bytes(emit("c", source_of(form), Options())["a_model.h"])
    x = make_vectors(form, NOTHING, 200, 5).x
    found = build(work / "a_model.h", "a_model", work, 120, flags=flags).run(x, 60)
    meant = form.evaluate(x)
    assert (found.scores == meant.scores).all()
    assert (found.classes == meant.classes).all()


@pytest.fixture(scope="module")
def bundle(table, features, tmp_path_factory):
    from export.bundle.manifest import bundle_files
    from export.entry import write_entry
    from export.source import source_of
    from models.store import load, replace_directory

    x, y = table
    root = tmp_path_factory.mktemp("rbf")
    estimator = make_pipeline(StandardScaler(), SVC(gamma=0.5)).fit(x, y)
    meta = {"family": "smartsbd", "created_by": "the tests"}
    write_entry("rbf", estimator, features, meta, x, {"n": 1}, "# rbf\n", labels=y, zoo=root)
    model = load("rbf", root)
    assert model.meta.kind == "rbf"
    assert model.meta.quantization_error["disagreements"] <= 1
    targets = ["c", "json", "onnx", "python"]
    files = bundle_files(source_of(model), targets, Options(), "the tests")
    replace_directory(root / "bundle", files)
    return root / "bundle"


@needs_compiler
def test_every_target_verifies(bundle):
    from export.verify import verify

    report = verify(bundle, VerifyParams(random=100))
    assert report["ok"], report
    for item in report["targets"]:
        assert item["vectors"] > 0
        assert item["mismatches"] == 0
    origins = report["targets"][0]["by_origin"]
    assert {"vectors", "boundary", "reach", "saturation"} <= set(origins)
    assert min(origins.values()) > 0


@needs_compiler
@pytest.mark.parametrize(
    ("old", "new"),
    [("> 26)", "> 24)"), ("& 1023]", "& 511]"), (">> 16)) >>", ">> 17)) >>")],
    ids=["reach", "index", "interpolation"],
)
def test_a_slip_in_the_arithmetic_is_found(old, new, bundle, tmp_path):
    form = loads((bundle / "model.json").read_bytes(), "model.json")
    text = (bundle / "rbf.h").read_text()
    assert text.count(old) == 1
    (tmp_path / "rbf.h").write_text(text.replace(old, new))
    x = make_vectors(form, NOTHING, 100, 5).x
    found = build(tmp_path / "rbf.h", "rbf", tmp_path, 120).run(x, 60)
    assert (found.scores != form.evaluate(x).scores).any()
