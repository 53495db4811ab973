"""Forests, boosted trees, networks and linear models of several classes or real values."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from small_models import FEATURES
from test_several import ACTIONS, actions_of, observations
from test_targets_c import NOTHING, source_of

from export.bundle.manifest import bundle_files
from export.document import dumps, loads
from export.fixed import to_integers
from export.lower import NotLowerable, lower
from export.lower.tree_file import lower_file
from export.onnx.file import convert
from export.onnx.run import predict
from export.params import Options, VerifyParams
from export.source import with_scale
from export.targets import fitting
from export.vectors import make_vectors
from export.verify import verify
from models.output import Output
from models.store import replace_directory

SCALE = np.array([f.scale for f in FEATURES], dtype=np.float64)
FOUR = ("cubic", "bbr", "reno", "keep")


def forest(x, y):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(12, max_depth=7, random_state=0).fit(x, y)


def extra(x, y):
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), ExtraTreesClassifier(9, max_depth=7)).fit(x, y)


def boosted(x, y):
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=6, random_state=0).fit(x, y)


def lightgbm(x, y):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=8, num_leaves=9, verbose=-1, n_jobs=1).fit(x, y)


def xgboost(x, y):
    from xgboost import XGBClassifier

    # XGBoost wants classes from 0 on without a gap.
    return XGBClassifier(n_estimators=8, max_depth=4, n_jobs=1).fit(
        x, np.unique(y, return_inverse=True)[1]
    )


def network(x, y):
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        StandardScaler(), MLPClassifier((8,), activation="tanh", random_state=0, max_iter=200)
    ).fit(x, y)


def logistic(x, y):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)


CLASSIFIERS = [forest, extra, boosted, lightgbm, xgboost, network, logistic]


def four(x):
    return (actions_of(x) // 7).astype(int)


@pytest.fixture(scope="module")
def x():
    return observations(2500)


def proved(form, estimator, labels, values, answers, directory, kind="classes"):
    file = convert(estimator, FEATURES, "m", labels, {})
    output = with_scale(Output(kind=kind), form)
    source = replace(source_of(form), values=values, probability=answers, onnx=file, output=output)
    # eBPF takes longer; tests of the form itself have it.
    targets = [t for t in fitting(source) if t != "bpf"]
    assert {"json", "onnx", "python"} <= set(targets)
    replace_directory(directory, bundle_files(source, targets, Options(), "the tests"))
    report = verify(directory, VerifyParams(random=300))
    assert report["ok"], json.dumps(report, indent=1)
    assert all(target["mismatches"] == 0 for target in report["targets"])
    return targets


@pytest.mark.parametrize("make", CLASSIFIERS, ids=lambda make: make.__name__)
def test_four_classes_decide_as_the_model_on_nearly_every_integer(make, x, tmp_path):
    y = four(x)
    assert set(y) == {0, 1, 2, 3}
    estimator = make(x, y)
    form = lower(estimator, FEATURES, FOUR)
    assert loads(dumps(form), "it") == form
    at = make_vectors(form, NOTHING, 4000, 1).x[:4000]
    differing = (form.evaluate(at).classes != estimator.predict(at / SCALE)).mean()
    assert differing <= 0.0005
    values = np.round(x[:64] * SCALE) / SCALE
    targets = proved(form, estimator, FOUR, values, estimator.predict_proba(values), tmp_path / "b")
    assert "table" in targets


@pytest.mark.parametrize("make", [forest, boosted, lightgbm], ids=lambda make: make.__name__)
def test_a_class_that_training_lacked_is_never_chosen(make, x):
    y = np.where(four(x) == 2, 0, four(x))
    estimator = make(x, y)
    form = lower(estimator, FEATURES, FOUR)
    at = make_vectors(form, NOTHING, 2000, 1).x
    assert 2 not in form.evaluate(at).classes
    answers = predict(convert(estimator, FEATURES, "m", FOUR, {}), x[:50], "m")
    assert answers.shape == (50, 4)
    assert (answers[:, 2] < 1e-6).all()
    assert np.allclose(answers[:, [0, 1, 3]], estimator.predict_proba(x[:50]), atol=1e-4)


def test_a_network_needs_every_class(x):
    y = np.where(four(x) == 2, 0, four(x))
    with pytest.raises(NotLowerable, match="3 outputs for 4 labels"):
        lower(logistic(x, y), FEATURES, FOUR)


def regressors():
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import (
        ExtraTreesRegressor,
        GradientBoostingRegressor,
        RandomForestRegressor,
    )
    from sklearn.linear_model import LinearRegression, Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor
    from xgboost import XGBRegressor

    def scaled(estimator):
        return make_pipeline(StandardScaler(), estimator)

    return {
        "tree": (DecisionTreeRegressor(max_depth=7), 3),
        "forest": (RandomForestRegressor(8, max_depth=6, random_state=0), 3),
        "extra": (ExtraTreesRegressor(8, max_depth=6, random_state=0), 1),
        "boosted": (GradientBoostingRegressor(n_estimators=10, random_state=0), 1),
        "lightgbm": (LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1), 1),
        "xgboost": (XGBRegressor(n_estimators=8, max_depth=4, n_jobs=1), 1),
        "network": (scaled(MLPRegressor(hidden_layer_sizes=(10,), random_state=0, max_iter=80)), 3),
        "linear": (LinearRegression(), 3),
        "ridge": (scaled(Ridge()), 1),
    }


@pytest.mark.parametrize("name", list(regressors()))
def test_real_values_come_out_with_their_fractional_bits(name, x, tmp_path):
    estimator, outputs = regressors()[name]
    y = np.stack([x[:, 0] / 10 - 20, x[:, 2] * x[:, 1], -x[:, 3]], axis=1)[:, :outputs]
    estimator.fit(x, y if outputs > 1 else y[:, 0])
    labels = ("rate", "gain", "delay")[:outputs]
    form = lower(estimator, FEATURES, labels)
    assert form.labels == labels
    values = np.round(x[:500] * SCALE) / SCALE
    meant = estimator.predict(values).reshape(500, outputs)
    scores = form.evaluate(to_integers(values, FEATURES)).scores.reshape(500, outputs)
    assert np.abs(scores / 2.0**form.places - meant).max() <= 1e-4 * np.abs(meant).max()
    proved(form, estimator, labels, values[:64], meant[:64], tmp_path / "b", "scores")


def test_boosting_of_25_actions_keeps_one_value_per_leaf(x):
    form = lower(lightgbm(x, actions_of(x)), FEATURES, ACTIONS)
    assert form.kind == "trees"
    assert not form.rows
    assert set(form.into) == set(range(25))


@pytest.mark.parametrize("init", [None, "zero"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_file_whose_margins_are_all_negative_never_chooses_a_class_it_lacks(seed, init):
    from sklearn.ensemble import GradientBoostingClassifier

    x = observations(600, seed)
    y = np.random.default_rng(seed).choice([0, 1, 3], 600)
    made = GradientBoostingClassifier(n_estimators=30, random_state=0, init=init).fit(x, y)
    integers = to_integers(x, FEATURES)
    model = onnx.load_from_string(convert(made, FEATURES, "m", FOUR, {}))
    if init == "zero":
        # The converter writes one start for three outputs.
        attributes = model.graph.node[0].attribute
        (starts,) = (a for a in attributes if a.name == "base_values")
        starts.floats[:] = [0.0] * 3
    form = lower_file(model.SerializeToString(), FEATURES, FOUR, 0.5, "action")
    assert 2 not in form.evaluate(integers).classes
    ours = lower(made, FEATURES, FOUR).evaluate(integers).classes
    assert (form.evaluate(integers).classes == ours).mean() >= 0.999


def test_a_label_that_beats_all_logarithms_has_no_form(x):
    made = boosted(x, np.where(four(x) == 2, 0, four(x)))
    model = onnx.load_from_string(convert(made, FEATURES, "m", FOUR, {}))
    (node,) = (n for n in model.graph.node if n.op_type == "Identity")
    node.op_type = "LogSoftmax"
    with pytest.raises(NotLowerable, match="logarithm"):
        lower_file(model.SerializeToString(), FEATURES, FOUR, 0.5, "action")


def with_leaf(value):
    """The file of one tree of four classes, in which a leaf holds another value."""
    from sklearn.tree import DecisionTreeClassifier

    at = observations(500)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(at, four(at))
    model = onnx.load_from_string(convert(tree, FEATURES, "m", FOUR, {}))
    (node,) = (n for n in model.graph.node if n.op_type == "TreeEnsembleClassifier")
    (weights,) = (a for a in node.attribute if a.name == "class_weights")
    weights.floats[0] = value
    return model.SerializeToString()


def test_a_lone_trees_large_leaf_stays_within_32_bits(tmp_path):
    form = lower_file(with_leaf(1e6), FEATURES, FOUR, 0.5, "classes")
    assert form.places == 10
    assert form.table.max() == 10**6 << 10
    source = replace(source_of(form), values=np.zeros((0, 4)), probability=np.zeros((0, 4)))
    replace_directory(tmp_path / "b", bundle_files(source, ["c", "table"], Options(), "the tests"))
    assert verify(tmp_path / "b", VerifyParams(random=100))["ok"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_leaf_that_is_no_number_has_no_form(value):
    with pytest.raises(NotLowerable, match=f"tree 0 adds {value} in node"):
        lower_file(with_leaf(value), FEATURES, FOUR, 0.5, "classes")


def test_a_boosted_leaf_that_is_no_number_has_no_form(x):
    made = boosted(x, four(x))
    made.estimators_[2, 1].tree_.value[-1] = np.inf
    with pytest.raises(NotLowerable, match="tree 9 adds inf in node"):
        lower(made, FEATURES, FOUR)
