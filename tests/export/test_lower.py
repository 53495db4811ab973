"""The integer forms against the estimators that they were lowered from."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier as Forest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier as TreeModel

from data.errors import UserError
from export.fixed import limits, to_integers, to_values
from export.lower import NotLowerable, lower
from export.vectors import make_vectors
from features.spec import Feature


def integers_in_range(form, features, n=4000):
    """Random and adversarial observations that the float model can be asked about too."""
    vectors = make_vectors(form, np.zeros((0, len(features)), dtype=np.int64), n, 3)
    low, high = limits(features)
    x = vectors.x
    return x[((x >= low) & (x <= high)).all(axis=1)]


TREES = {
    "plain": lambda: TreeModel(max_depth=10, random_state=0),
    "best first": lambda: TreeModel(max_leaf_nodes=40, random_state=0),
    "weighted": lambda: TreeModel(max_depth=8, class_weight="balanced", random_state=0),
    "a stump's leaf": lambda: TreeModel(max_depth=1, min_samples_leaf=700, random_state=0),
    "scaled": lambda: make_pipeline(StandardScaler(), TreeModel(max_depth=8, random_state=0)),
    "scaled twice": lambda: make_pipeline(
        RobustScaler(), MinMaxScaler(), TreeModel(max_depth=8, random_state=0)
    ),
    "selected": lambda: make_pipeline(
        StandardScaler(), SelectKBest(k=2), TreeModel(max_depth=8, random_state=0)
    ),
    "platt": lambda: CalibratedClassifierCV(TreeModel(max_depth=8, random_state=0), ensemble=False),
    "isotonic": lambda: CalibratedClassifierCV(
        TreeModel(max_depth=8, random_state=0), ensemble=False, method="isotonic"
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_tree_answers_exactly_as_scikit_learn(name, table, features):
    x, y = table
    estimator = TREES[name]().fit(x, y)
    form = lower(estimator, features)
    k = integers_in_range(form, features)
    meant = estimator.predict_proba(to_values(k, features))[:, 1]
    found = form.evaluate(k)
    assert (found.classes == (meant > 0.5)).all()
    assert np.abs(found.scores / 65536 - meant).max() < 1e-4


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_threshold_of_decision_moves_into_the_cut(threshold, table, features):
    x, y = table
    estimator = TreeModel(max_depth=6, random_state=0).fit(x, y)
    k = to_integers(x, features)
    meant = estimator.predict_proba(to_values(k, features))[:, 1] > threshold
    assert (lower(estimator, features, threshold=threshold).evaluate(k).classes == meant).all()


NEARLY = {
    "forest": (lambda: Forest(15, max_depth=7, random_state=0), 0.0),
    "unpruned forest": (lambda: Forest(8, random_state=0), 0.0),
    "extra trees": (lambda: ExtraTreesClassifier(8, max_depth=7, random_state=0), 0.0),
    "calibrated forest": (
        lambda: CalibratedClassifierCV(Forest(8, max_depth=6, random_state=0), ensemble=False),
        0.001,
    ),
    "boosted": (lambda: GradientBoostingClassifier(n_estimators=15, random_state=0), 0.001),
    "logistic": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), 0.001),
    "linear svm": (lambda: make_pipeline(StandardScaler(), LinearSVC()), 0.001),
    "linear svc": (
        lambda: make_pipeline(
            MinMaxScaler(), CalibratedClassifierCV(SVC(kernel="linear"), ensemble=False)
        ),
        0.001,
    ),
}


@pytest.mark.parametrize("name", NEARLY)
def test_sums_agree_but_for_rounding(name, table, features):
    x, y = table
    make, allowed = NEARLY[name]
    estimator = make().fit(x, y)
    form = lower(estimator, features)
    low, high = limits(features)
    k = np.random.default_rng(1).integers(low, high, (5000, 4), endpoint=True)
    meant = (
        estimator.predict_proba(to_values(k, features))[:, 1] > 0.5
        if hasattr(estimator, "predict_proba")
        else estimator.decision_function(to_values(k, features)) > 0
    )
    classes = form.evaluate(k).classes
    assert (classes != meant).mean() <= allowed
    assert 0 < classes.mean() < 1, "both classes must occur, or agreement means nothing"


REFUSED = {
    "multi-class": (lambda: TreeModel(), np.arange(1500) % 3),
    "polynomial kernel": (lambda: SVC(kernel="poly"), None),
    "polynomials": (lambda: make_pipeline(PolynomialFeatures(), TreeModel()), None),
    "average of calibrated": (lambda: CalibratedClassifierCV(TreeModel(), cv=2), None),
    "other class names": (lambda: TreeModel(), np.array(["a", "b"] * 750)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_says_so(name, table, features):
    make, y = REFUSED[name]
    x, labels = table
    with pytest.raises(NotLowerable):
        lower(make().fit(x, labels if y is None else y), features)


def test_features_of_another_number_are_refused(table, features):
    x, y = table
    with pytest.raises(NotLowerable, match="4 columns, not 3"):
        lower(TreeModel().fit(x, y), features[:3])


def test_integers_are_rounded_half_up_and_clipped():
    spec = (Feature("a", "ms", -1.0, 2.0, 10, "", ""),)
    values = np.array([[-9.0], [-0.15], [0.05], [0.04], [1.96], [1e9], [-np.inf]])
    assert to_integers(values, spec).ravel().tolist() == [-10, -1, 1, 0, 20, 20, -10]
    with pytest.raises(UserError, match="row 0: feature 'a' is NaN"):
        to_integers(np.array([[np.nan]]), spec)


def test_a_range_beyond_32_bits_is_refused(table):
    x, y = table
    wide = (Feature("a", "us", 0.0, 1e7, 1000, "", ""),)
    with pytest.raises(UserError, match=r"'a'.*32-bit"):
        lower(TreeModel(max_depth=2).fit(x[:, :1], y), wide)
