"""Make estimators of this environment from arrays that another one has written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.trees import unpacked

Arrays = Mapping[str, NDArray[Any]]


def estimator(form: Mapping[str, Any], arrays: Arrays, n_features: int) -> Any:
    """Make a fitted classifier on all ``n_features`` columns.

    Parameters
    ----------
    form : mapping
        ``kind`` (a key of `KINDS`), ``steps`` (how many scalings) and what the kind needs.
    arrays : mapping
        ``columns`` that are used, ``center-<i>`` and ``spread-<i>`` of each scaling, and the
        classifier's own.
    n_features : int
        Number of columns of the rows that it will classify.

    Returns
    -------
    Pipeline
        Selection, scalings and classifier.
    """
    from sklearn.pipeline import Pipeline

    columns = arrays["columns"]
    steps: list[tuple[str, Any]] = [("columns", _selector(columns, n_features))]
    for i in range(int(form["steps"])):
        steps.append((f"scaling-{i}", _scaler(arrays[f"center-{i}"], arrays[f"spread-{i}"])))
    return Pipeline([*steps, ("classifier", KINDS[form["kind"]](form, arrays, len(columns)))])


def _selector(columns: NDArray[Any], n_features: int) -> Any:
    """Keeps columns, in the table's order."""
    from sklearn.feature_selection import SelectKBest

    selector = SelectKBest(k=len(columns))
    selector.scores_ = np.isin(np.arange(n_features), columns).astype(np.float64)
    selector.n_features_in_ = n_features
    return selector


def _scaler(center: NDArray[Any], spread: NDArray[Any]) -> Any:
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = center, spread, spread**2
    scaler.n_features_in_ = len(center)
    scaler.n_samples_seen_ = 1
    return scaler


def _trees(form: Mapping[str, Any], arrays: Arrays, d: int) -> Any:
    return unpacked(arrays, d, form["link"], bool(form["single"]), float(form["prior"]))


def _linear(form: Mapping[str, Any], arrays: Arrays, d: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.coef_, model.intercept_ = arrays["weights"][None, :], arrays["bias"]
    model.classes_, model.n_features_in_ = np.array([0, 1]), d
    return model


def _network(form: Mapping[str, Any], arrays: Arrays, d: int) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import LabelBinarizer

    layers = range(int(form["layers"]))
    model = MLPClassifier(activation=form["activation"])
    model.coefs_ = [np.asarray(arrays[f"weights-{i}"], dtype=np.float64) for i in layers]
    model.intercepts_ = [np.asarray(arrays[f"biases-{i}"], dtype=np.float64) for i in layers]
    model.n_layers_, model.n_outputs_, model.out_activation_ = len(layers) + 1, 1, "logistic"
    model.classes_, model.n_features_in_ = np.array([0, 1]), d
    model._label_binarizer = LabelBinarizer().fit(model.classes_)
    return model


KINDS = {"trees": _trees, "linear": _linear, "network": _network}
"""Kind of member -> function that makes its classifier."""
