"""Fitted estimators -> intermediate form."""

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
    "RandomForestClassifier": "export.lower.forest",
    "ExtraTreesClassifier": "export.lower.forest",
    "GradientBoostingClassifier": "export.lower.boosted",
    "LGBMClassifier": "export.lower.ensemble",
    "XGBClassifier": "export.lower.ensemble",
    "TreeEnsemble": "export.lower.ensemble",
    "MLPClassifier": "export.lower.mlp",
    "LogisticRegression": "export.lower.linear",
    "LogisticRegressionCV": "export.lower.linear",
    "LinearSVC": "export.lower.linear",
    "SGDClassifier": "export.lower.linear",
    "SVC": "export.lower.svm",
}
"""Estimator's class name -> module with ``lower(Prepared) -> Form``."""


def lower(
    estimator: Any,
    features: Sequence[Feature],
    labels: tuple[str, str] = ("NSB", "SB"),
    threshold: float = 0.5,
) -> Form:
    """Lower a fitted binary classifier to integers.

    Scalers and column selectors before the estimator and calibrators around it are folded in.

    Parameters
    ----------
    estimator : fitted scikit-learn classifier
        Trained on the columns ``features``, in that order; its larger class is ``labels[1]``.
    features : sequence of Feature
        What the columns are; their scales and ranges define the integers.
    labels : tuple of str
        Names of the two classes.
    threshold : float
        ``labels[1]`` is chosen where its probability is above this.

    Returns
    -------
    Form
        A tree answers on every integer exactly as the estimator does on ``integer / scale``;
        forests and linear models up to the rounding of their values and weights.

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
    form: Form = importlib.import_module(LOWERINGS[name]).lower(prepared)
    return form
