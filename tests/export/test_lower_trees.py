"""LightGBM, XGBoost and trees as arrays: the integers turn where the library does."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from export.document import dumps, loads
from export.fixed import limits
from export.lower import NotLowerable, lower
from export.onnx.file import convert
from export.onnx.run import predict
from features.spec import Feature
from models.trees import FIELDS, OtherTrees, TreeArrays, TreeEnsemble, from_xgboost, of

FEATURES = (
    Feature("ratio", "1", 0.0, 16.0, 1000, "rtt", "a ratio"),
    Feature("distance", "us", 0, 4_000_000, 1, "rtt", "a distance"),
    Feature("level", "1", -4.0, 4.0, 4096, "cwnd", "a level"),
)
ROUNDING = 1e-5


def observations(n, seed=0):
    rng = np.random.default_rng(seed)
    low, high = limits(FEATURES)
    return rng.integers(low, high, (n, len(FEATURES)), endpoint=True)


def floats(k):
    return k / np.array([feature.scale for feature in FEATURES], dtype=np.float64)


def labels(x):
    return ((x[:, 0] > 7) ^ (x[:, 2] > 0.3) | (x[:, 1] > 3e6)).astype(np.int64)


def lightgbm(x, y):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=12, num_leaves=9, verbose=-1, n_jobs=1).fit(x, y)


def xgboost(x, y):
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=12, max_depth=4, n_jobs=1).fit(x, y)


def scaled(x, y):
    """A forest behind a scaling, as arrays."""
    scaler = StandardScaler().fit(x)
    forest = ExtraTreesClassifier(6, max_depth=5, random_state=0).fit(scaler.transform(x), y)
    trees = tuple(
        TreeArrays(*(getattr(t, f) for f in FIELDS[:-1]), t.value[:, 0, 1])
        for t in (one.tree_ for one in forest.estimators_)
    )
    return make_pipeline(scaler, TreeEnsemble(trees, x.shape[1], "mean", single=True))


@pytest.fixture(scope="module", params=[lightgbm, xgboost, scaled], ids=lambda f: f.__name__)
def fitted(request):
    x = floats(observations(600))
    with warnings.catch_warnings(action="ignore"):
        return request.param(x, labels(x))


def probability(model, x):
    with warnings.catch_warnings(action="ignore"):
        return model.predict_proba(x)[:, 1]


def around_thresholds(form):
    """Every threshold at -1, 0 and +1, the other features anywhere."""
    rows = []
    for nodes in form.trees:
        for feature, value in zip(nodes.feature, nodes.value, strict=True):
            if feature >= 0:
                for beside in (-1, 0, 1):
                    row = observations(1, seed=len(rows))[0]
                    row[feature] = value + beside
                    rows.append(row)
    low, high = limits(FEATURES)
    return np.clip(np.array(rows), low, high)


def test_every_threshold_turns_on_the_same_integer(fitted):
    form = lower(fitted, FEATURES)
    assert form.kind == "forest"
    k = np.concatenate([around_thresholds(form), observations(500, seed=9)])
    p = probability(fitted, floats(k))
    score = form.evaluate(k).scores
    if hasattr(fitted, "steps"):
        meant = p * 65536 * len(form.trees)
    else:
        # The prior is in the cut; what is left is the margin up to a constant.
        raw = "raw_score" if type(fitted).__name__ == "LGBMClassifier" else "output_margin"
        with warnings.catch_warnings(action="ignore"):
            margin = fitted.predict(floats(k), **{raw: True}).astype(np.float64) * 65536
        meant = margin + np.median(score - margin)
    # A comparison that turned elsewhere would move a score by a leaf's value.
    assert np.abs(score - meant).max() <= len(form.trees)
    clear = np.abs(p - 0.5) > 1e-3
    assert (form.evaluate(k).classes[clear] == (p > 0.5)[clear]).all()
    assert set((p > 0.5).tolist()) == {False, True}
    again = loads(dumps(form), "form")
    assert again.evaluate(k).classes.tolist() == form.evaluate(k).classes.tolist()


def test_onnx_turns_on_the_same_float32(fitted):
    form = lower(fitted, FEATURES)
    exact = floats(around_thresholds(form)).astype(np.float32)
    beside = [np.nextafter(exact, np.float32(end)) for end in (-np.inf, np.inf)]
    x = np.concatenate([exact, *beside]).astype(np.float64)
    content = convert(fitted, FEATURES, "trees", ("NSB", "SB"), {})
    assert np.abs(predict(content, x, "trees") - probability(fitted, x)).max() < ROUNDING


def test_arrays_answer_as_the_library(fitted):
    x = floats(observations(400, seed=3))
    final = fitted.steps[-1][-1] if hasattr(fitted, "steps") else fitted
    given = fitted[:-1].transform(x) if hasattr(fitted, "steps") else x
    assert np.abs(of(final).predict_proba(given)[:, 1] - probability(fitted, x)).max() < ROUNDING


def test_what_isnt_comparisons_with_thresholds_is_refused():
    from xgboost import XGBClassifier

    x = floats(observations(200))
    linear = XGBClassifier(n_estimators=2, booster="gblinear").fit(x, labels(x))
    with pytest.raises(OtherTrees, match="gblinear"):
        from_xgboost(linear)
    hinge = XGBClassifier(n_estimators=2, objective="binary:hinge").fit(x, labels(x))
    with pytest.raises(NotLowerable, match="hinge"):
        lower(hinge, FEATURES)


def test_categories_are_refused():
    from lightgbm import LGBMClassifier

    x = floats(observations(400))
    x[:, 0] = np.floor(x[:, 0])
    model = LGBMClassifier(n_estimators=3, verbose=-1, min_data_per_group=1, n_jobs=1)
    model.fit(x, (x[:, 0] % 2).astype(int), categorical_feature=[0])
    with pytest.raises(NotLowerable, match="category"):
        lower(model, FEATURES)


def test_depth_and_leaves_of_a_tree():
    tree = TreeArrays(
        np.array([0, 1, -1, -1, -1]),
        np.array([0.5, 2.0, 0, 0, 0]),
        np.array([1, 2, -1, -1, -1]),
        np.array([4, 3, -1, -1, -1]),
        np.array([0, 0, 1.0, 2.0, 3.0]),
    )
    assert tree.max_depth == 2
    x = np.array([[0.5, 2.0], [0.5, 2.1], [0.6, 0.0]])
    assert tree.value[tree.leaves(x)].tolist() == [1.0, 2.0, 3.0]
