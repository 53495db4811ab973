"""Write a fitted pipeline of auto-sklearn as plain arrays of trees, weights and scalings.

This runs with Python 3.9 and scikit-learn 0.24 to 1.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SCALERS = {"StandardScaler": ("mean_", "scale_"), "RobustScaler": ("center_", "scale_")}


class NoForm(Exception):
    """The member has no plain form; the message has the reason."""


def exported(pipeline: Any, x: np.ndarray, path: Path) -> dict[str, Any]:
    """Write a member's arrays and return their description.

    Raises
    ------
    NoForm
        When arrays can't describe a step or the classifier.
    """
    if not hasattr(pipeline, "named_steps"):
        raise NoForm("a stand-in that has learned nothing")
    columns, steps = numbers(pipeline.named_steps["data_preprocessor"], x.shape[1])
    chosen = pipeline.named_steps["feature_preprocessor"].choice
    columns, steps = selected(chosen, columns, steps)
    wrapper = pipeline.named_steps["classifier"].choice
    form, arrays = classifier(wrapper)
    for i, (center, spread) in enumerate(steps):
        arrays[f"center-{i}"], arrays[f"spread-{i}"] = center, spread
    arrays["columns"] = columns
    np.savez_compressed(path, **arrays)
    return {**form, "steps": len(steps)}


def numbers(preprocessor: Any, d: int) -> Any:
    """Columns kept by the data preprocessor, and its scalings; every input is a number."""
    inner = preprocessor.choice.column_transformer
    transformers = [t for t in inner.transformers_ if t[0] != "remainder" and len(t[2])]
    if len(transformers) != 1 or transformers[0][0] != "numerical_transformer":
        raise NoForm("inputs aren't all numbers")
    columns = np.arange(d)
    steps: list[Any] = []
    for name, step in transformers[0][1].named_steps.items():
        chosen = getattr(step, "choice", step)
        actual = getattr(chosen, "preprocessor", None)
        if name == "imputation" or actual in (None, "passthrough"):
            # Nothing is ever missing here.
            continue
        if hasattr(actual, "get_support"):
            columns, steps = picked(actual.get_support(), columns, steps)
            continue
        kind = type(actual).__name__
        if kind == "MinMaxScaler":
            center, spread = -actual.min_ / actual.scale_, 1 / actual.scale_
        elif kind in SCALERS:
            center, spread = (getattr(actual, field) for field in SCALERS[kind])
        else:
            raise NoForm(f"the step {kind} isn't a scaling of single features")
        n = len(columns)
        center = np.zeros(n) if center is None else np.asarray(center, dtype=np.float64)
        spread = np.ones(n) if spread is None else np.asarray(spread, dtype=np.float64)
        steps = [*steps, (center, spread)]
    return columns, steps


def selected(chosen: Any, columns: np.ndarray, steps: Any) -> Any:
    """Columns kept by the feature preprocessor, provided that it does nothing but select."""
    name = type(chosen).__name__
    actual: Any = getattr(chosen, "preprocessor", None)
    if name == "NoPreprocessing" or actual == "passthrough":
        return columns, steps
    if hasattr(actual, "get_support"):
        return picked(actual.get_support(), columns, steps)
    raise NoForm(f"the step {name} isn't a selection of single features")


def picked(support: np.ndarray, columns: np.ndarray, steps: Any) -> Any:
    """Columns that a selection keeps, with their scalings."""
    return columns[support], [(center[support], spread[support]) for center, spread in steps]


def classifier(wrapper: Any) -> Any:
    """Kind of the classifier, and its arrays."""
    estimator = wrapper.estimator
    kind = type(estimator).__name__
    if kind not in FORMS:
        raise NoForm(f"{kind} has no integer form")
    return FORMS[kind](wrapper, estimator)


def trees(listed: Any, link: str, single: bool, prior: float = 0.0) -> Any:
    """Trees as arrays laid end to end: feature, threshold, left, right, value."""
    names = ("feature", "threshold", "children_left", "children_right", "value")
    arrays = {name: np.concatenate([tree[i] for tree in listed]) for i, name in enumerate(names)}
    arrays["nodes"] = np.array([len(tree[0]) for tree in listed])
    return {"kind": "trees", "link": link, "single": single, "prior": prior}, arrays


def plain_tree(tree: Any, value: np.ndarray) -> Any:
    """Arrays of a scikit-learn tree with the given leaf values."""
    return tree.feature, tree.threshold, tree.children_left, tree.children_right, value


def share(tree: Any) -> np.ndarray:
    """P(class 1) in every node."""
    weight = tree.value[:, 0, :]
    return np.asarray(weight[:, 1] / weight.sum(axis=1))


def tree_form(wrapper: Any, estimator: Any) -> Any:
    """A decision tree."""
    return trees([plain_tree(estimator.tree_, share(estimator.tree_))], "mean", True)


def forest_form(wrapper: Any, estimator: Any) -> Any:
    """A random forest or extra trees: the mean of their trees' shares."""
    listed = [plain_tree(one.tree_, share(one.tree_)) for one in estimator.estimators_]
    return trees(listed, "mean", True)


def boosted_form(wrapper: Any, estimator: Any) -> Any:
    """Histogram gradient boosting: a prior and leaves of margins, doubles compared as they are."""
    listed = []
    for (one,) in estimator._predictors:
        nodes = one.nodes
        names = nodes.dtype.names
        threshold = nodes["num_threshold" if "num_threshold" in names else "threshold"]
        if "is_categorical" in names and nodes["is_categorical"].any():
            raise NoForm("a tree splits by category")
        leaf = nodes["is_leaf"].astype(bool)
        listed.append(
            (
                np.where(leaf, -1, nodes["feature_idx"]).astype(np.int64),
                np.where(leaf, 0.0, threshold),
                np.where(leaf, -1, nodes["left"]).astype(np.int64),
                np.where(leaf, -1, nodes["right"]).astype(np.int64),
                np.where(leaf, nodes["value"], 0.0),
            )
        )
    prior = float(np.ravel(estimator._baseline_prediction)[0])
    return trees(listed, "logistic", False, prior)


def adaboost_form(wrapper: Any, estimator: Any) -> Any:
    """AdaBoost: each tree adds half the difference of its log-probabilities, or its vote."""
    weights = estimator.estimator_weights_[: len(estimator.estimators_)]
    listed = []
    for one, weight in zip(estimator.estimators_, weights):  # noqa: B905
        p = share(one.tree_)
        if estimator.algorithm == "SAMME.R":
            least = np.finfo(np.float64).eps
            margin = np.log(np.maximum(p, least)) - np.log(np.maximum(1 - p, least))
            # K - 1 = 1; the log-probabilities' mean is taken off, a half of each is left.
            value = margin / 2 * 2 / weights.sum() * weight
        else:
            value = np.where(p > 0.5, 1.0, -1.0) * weight / weights.sum()
        listed.append(plain_tree(one.tree_, value))
    return trees(listed, "logistic", True)


def linear_form(wrapper: Any, estimator: Any) -> Any:
    """A margin whose logistic function auto-sklearn takes as probability."""
    if getattr(estimator, "loss", "") == "modified_huber":
        raise NoForm("the probability of modified_huber isn't the logistic function of a margin")
    weights = np.asarray(estimator.coef_, dtype=np.float64)[0]
    return {"kind": "linear"}, {"weights": weights, "bias": np.ravel(estimator.intercept_)[:1]}


def network_form(wrapper: Any, estimator: Any) -> Any:
    """A multilayer perceptron."""
    arrays = {}
    for i, (weights, biases) in enumerate(zip(estimator.coefs_, estimator.intercepts_)):  # noqa: B905
        arrays[f"weights-{i}"], arrays[f"biases-{i}"] = weights, biases
    form = {"kind": "network", "layers": len(estimator.coefs_), "activation": estimator.activation}
    return form, arrays


FORMS = {
    "DecisionTreeClassifier": tree_form,
    "RandomForestClassifier": forest_form,
    "ExtraTreesClassifier": forest_form,
    "HistGradientBoostingClassifier": boosted_form,
    "AdaBoostClassifier": adaboost_form,
    "SGDClassifier": linear_form,
    "PassiveAggressiveClassifier": linear_form,
    "MLPClassifier": network_form,
}
