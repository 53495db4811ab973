"""Lowers fitted estimators to intermediate forms."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from export.fixed import limits
from export.ir import Form
from export.lower.prepare import NotLowerable, prepare
from features.spec import Feature

__all__ = ["LOWERINGS", "NotLowerable", "lower"]

LOWERINGS: dict[str, str] = {
    "DecisionTreeClassifier": "export.lower.tree",
    "ExtraTreeClassifier": "export.lower.tree",
    "DecisionTreeRegressor": "export.lower.tree",
    "ExtraTreeRegressor": "export.lower.tree",
    "RandomForestClassifier": "export.lower.forest",
    "ExtraTreesClassifier": "export.lower.forest",
    "RandomForestRegressor": "export.lower.forest",
    "ExtraTreesRegressor": "export.lower.forest",
    "GradientBoostingClassifier": "export.lower.boosted",
    "GradientBoostingRegressor": "export.lower.boosted",
    "LGBMClassifier": "export.lower.ensemble",
    "LGBMRegressor": "export.lower.ensemble",
    "XGBClassifier": "export.lower.ensemble",
    "XGBRegressor": "export.lower.ensemble",
    "TreeEnsemble": "export.lower.ensemble",
    "MLPClassifier": "export.lower.mlp",
    "MLPRegressor": "export.lower.mlp",
    "LinearRegression": "export.lower.linear",
    "Ridge": "export.lower.linear",
    "LogisticRegression": "export.lower.linear",
    "LogisticRegressionCV": "export.lower.linear",
    "LinearSVC": "export.lower.linear",
    "SGDClassifier": "export.lower.linear",
    "SVC": "export.lower.svm",
}
"""Estimator's class name -> module with ``lower(Prepared) -> Form``."""
BINARY = frozenset({"LinearSVC", "SGDClassifier", "SVC", "TreeEnsemble"})
"""Estimators that have a form with two classes alone."""


def lower(
    estimator: Any,
    features: Sequence[Feature],
    labels: tuple[str, ...] = ("NSB", "SB"),
    threshold: float = 0.5,
) -> Form:
    """Lower a fitted classifier or regressor to integers.

    Scalers and column selectors before the estimator and calibrators around it are folded in.

    Parameters
    ----------
    estimator : fitted scikit-learn classifier or regressor
        Trained on the columns ``features``, in that order. With two labels its larger class is
        ``labels[1]``; with more, its classes are labels or indices of labels. A regressor has
        one output per label.
    features : sequence of Feature
        What the columns are; their scales and ranges define the integers.
    labels : tuple of str
        Names of the classes, or of a regressor's outputs.
    threshold : float
        Of two classes ``labels[1]`` is chosen if its probability is above this; of more the
        first most probable.

    Returns
    -------
    Form
        A tree decides on every integer exactly as the estimator does on ``integer / scale``;
        forests and linear models up to the rounding of their values and weights, and so do real
        scores.

    Raises
    ------
    NotLowerable
        When no form has this model's meaning: it can only be exported as ONNX.
    """
    limits(features)
    prepared = prepare(estimator, tuple(features), labels, threshold)
    name = type(prepared.estimator).__name__
    if name not in LOWERINGS:
        raise NotLowerable(f"{name} has no integer form (known: {', '.join(sorted(LOWERINGS))})")
    if not prepared.binary and name in BINARY:
        what = "regression" if prepared.regressor else f"{len(labels)} classes"
        raise NotLowerable(f"{name} for {what} has no integer form")
    form: Form = importlib.import_module(LOWERINGS[name]).lower(prepared)
    return form
