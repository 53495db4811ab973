"""Trees of any library as arrays, so that one lowering and one conversion serve them all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from models.stats.calibration import sigmoid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FIELDS = ("feature", "threshold", "children_left", "children_right", "value")
MEAN, LOGISTIC = "mean", "logistic"


class OtherTrees(Exception):
    """Trees with something that arrays of thresholds don't say; the message says what."""


@dataclass(frozen=True)
class TreeArrays:
    """One tree; node 0 is its root.

    Attributes
    ----------
    feature : int64 array [nodes]
    threshold : float64 array [nodes]
        Left where ``input <= threshold``.
    children_left, children_right : int64 arrays [nodes]
        -1 in leaves.
    value : float64 array [nodes]
        What a leaf adds.
    """

    feature: Ints
    threshold: Floats
    children_left: Ints
    children_right: Ints
    value: Floats

    @property
    def max_depth(self) -> int:
        """Comparisons on the longest path."""
        depth = 0
        level = np.zeros(1, dtype=np.int64)
        while (inner := level[self.children_left[level] >= 0]).size:
            depth += 1
            level = np.concatenate([self.children_left[inner], self.children_right[inner]])
        return depth

    def leaves(self, x: Floats) -> Ints:
        """Leaf that each row [N, d] ends in."""
        at = np.zeros(len(x), dtype=np.int64)
        while (rows := np.flatnonzero(self.children_left[at] >= 0)).size:
            node = at[rows]
            left = x[rows, self.feature[node]] <= self.threshold[node]
            at[rows] = np.where(left, self.children_left[node], self.children_right[node])
        return at


@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes whose trees' leaves are added up.

    Attributes
    ----------
    trees : tuple of TreeArrays
    n_features_in_ : int
    link : str
        ``mean``: P(SB) is the leaves' mean; ``logistic``: the logistic function of ``prior`` and
        the leaves' sum.
    single : bool
        Inputs are rounded to float32 before they are compared.
    prior : float
    """

    trees: tuple[TreeArrays, ...]
    n_features_in_: int
    link: str
    single: bool
    prior: float = 0.0

    @property
    def classes_(self) -> Ints:
        """0 and 1."""
        return np.array([0, 1])

    def fit(self, x: Any, y: Any) -> TreeEnsemble:
        """Change nothing, as scikit-learn's ``FrozenEstimator``: the trees are grown."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, x: Any) -> Floats:
        """Probabilities of both classes, float64 [N, 2], of rows [N, d]."""
        rows = np.asarray(x, dtype=np.float32 if self.single else np.float64).astype(np.float64)
        total = np.zeros(len(rows))
        for tree in self.trees:
            total += tree.value[tree.leaves(rows)]
        p = total / len(self.trees) if self.link == MEAN else sigmoid(total + self.prior)
        return np.stack([1 - p, p], axis=1)


@dataclass(frozen=True, eq=False)
class AddedTrees:
    """Trees of which each adds to one of several scores, or to a real value.

    Attributes
    ----------
    trees : tuple of TreeArrays
    outputs : tuple of int
        Class or output that each tree adds to.
    priors : tuple of float
        What each score starts from.
    single : bool
        As of `TreeEnsemble`.
    """

    trees: tuple[TreeArrays, ...]
    outputs: tuple[int, ...]
    priors: tuple[float, ...]
    single: bool


IDENTITY = frozenset(
    {"regression", "regression_l1", "huber", "fair", "quantile", "mape"}
    | {f"reg:{loss}error" for loss in ("squared", "absolute", "pseudohuber", "quantile")}
)
"""Objectives of LightGBM and XGBoost whose sums of leaves are the answers themselves."""


def added(estimator: Any) -> AddedTrees:
    """The trees of a fitted model of LightGBM or XGBoost: several classes, or real values.

    Raises
    ------
    OtherTrees
        When they aren't plain comparisons with thresholds, or their sums aren't the answers.
    """
    if type(estimator).__name__.startswith("LGBM"):
        model = estimator.booster_.dump_model()
        objective = str(model.get("objective", "")).split()
        if objective[:1] != ["multiclass"] and (
            len(objective) != 1 or objective[0] not in IDENTITY
        ):
            raise OtherTrees(f"LightGBM's objective {' '.join(objective)!r} has no sums of leaves")
        if model.get("average_output"):
            raise OtherTrees("LightGBM's random forest averages margins")
        count = int(model["num_tree_per_iteration"])
        trees = tuple(_lightgbm_tree(item["tree_structure"]) for item in model["tree_info"])
        outputs = tuple(i % count for i in range(len(trees)))
        return AddedTrees(trees, outputs, (0.0,) * count, single=False)
    learner = json.loads(estimator.get_booster().save_raw("json"))["learner"]
    objective = learner["objective"]["name"]
    if objective not in IDENTITY | {"multi:softprob", "multi:softmax"}:
        raise OtherTrees(f"XGBoost's objective {objective!r} has no sums of leaves")
    if learner["gradient_booster"]["name"] != "gbtree":
        raise OtherTrees("XGBoost's booster isn't plain trees")
    grown = learner["gradient_booster"]["model"]
    limit = getattr(estimator, "best_iteration", None)
    end = len(grown["trees"]) if limit is None else grown["iteration_indptr"][limit + 1]
    if any(int(tree["tree_param"].get("size_leaf_vector", 1)) > 1 for tree in grown["trees"]):
        raise OtherTrees("XGBoost's leaves hold vectors: grow one tree per output")
    params = learner["learner_model_param"]
    count = max(int(params["num_class"]), int(params.get("num_target", 1)), 1)
    base = [float(text) for text in str(params["base_score"]).strip("[]").split(",")]
    return AddedTrees(
        tuple(map(_xgboost_tree, grown["trees"][:end])),
        tuple(grown["tree_info"][:end]),
        tuple(base) if len(base) == count else (base[0],) * count,
        single=True,
    )


def of(estimator: Any) -> TreeEnsemble:
    """The trees of a fitted classifier of LightGBM or XGBoost, or what is trees already.

    Raises
    ------
    OtherTrees
        When they aren't plain comparisons with thresholds, or not of two classes.
    """
    name = type(estimator).__name__
    if name == "LGBMClassifier":
        return from_lightgbm(estimator)
    if name == "XGBClassifier":
        return from_xgboost(estimator)
    if isinstance(estimator, TreeEnsemble):
        return estimator
    raise OtherTrees(f"{name} isn't an ensemble of trees")


def from_lightgbm(estimator: Any) -> TreeEnsemble:
    """Trees of a fitted ``LGBMClassifier``; the first tree's leaves hold the prior."""
    model = estimator.booster_.dump_model()
    objective = str(model.get("objective", "")).split()
    if objective[:1] != ["binary"] or any(
        part.startswith("sigmoid:") and float(part[8:]) != 1.0 for part in objective
    ):
        raise OtherTrees(f"LightGBM's objective {' '.join(objective)!r} isn't the logistic one")
    trees = tuple(_lightgbm_tree(item["tree_structure"]) for item in model["tree_info"])
    if model.get("average_output"):
        raise OtherTrees("LightGBM's random forest averages margins")
    # LightGBM compares doubles as they are.
    return TreeEnsemble(trees, int(model["max_feature_idx"]) + 1, LOGISTIC, single=False)


def _lightgbm_tree(root: Mapping[str, Any]) -> TreeArrays:
    nodes: list[Mapping[str, Any]] = [root]
    columns: dict[str, list[float]] = {field: [] for field in FIELDS}
    for node in nodes:
        inner = "left_child" in node
        if inner and node["decision_type"] != "<=":
            raise OtherTrees(f"LightGBM compares with {node['decision_type']}: a category")
        columns["feature"].append(node["split_feature"] if inner else -1)
        columns["threshold"].append(node["threshold"] if inner else 0.0)
        columns["children_left"].append(len(nodes) if inner else -1)
        columns["children_right"].append(len(nodes) + 1 if inner else -1)
        columns["value"].append(0.0 if inner else node["leaf_value"])
        if inner:
            # The list grows while it is walked: breadth first.
            nodes += [node["left_child"], node["right_child"]]
    return _arrays(columns)


def from_xgboost(estimator: Any) -> TreeEnsemble:
    """Trees of a fitted ``XGBClassifier``."""
    model = json.loads(estimator.get_booster().save_raw("json"))["learner"]
    objective = model["objective"]["name"]
    if objective != "binary:logistic":
        raise OtherTrees(f"XGBoost's objective {objective!r} isn't the logistic one")
    if model["gradient_booster"]["name"] != "gbtree":
        raise OtherTrees(f"XGBoost's booster {model['gradient_booster']['name']} isn't plain trees")
    limit = getattr(estimator, "best_iteration", None)
    listed = model["gradient_booster"]["model"]["trees"][: None if limit is None else limit + 1]
    base = float(str(model["learner_model_param"]["base_score"]).strip("[]"))
    trees = map(_xgboost_tree, listed)
    d = int(model["learner_model_param"]["num_feature"])
    prior = math.log(base / (1 - base))
    return TreeEnsemble(tuple(trees), d, LOGISTIC, single=True, prior=prior)


def _xgboost_tree(tree: Mapping[str, Any]) -> TreeArrays:
    if any(tree["split_type"]):
        raise OtherTrees("XGBoost splits by category")
    leaf = np.asarray(tree["left_children"]) < 0
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    # XGBoost goes left where input < condition, in float32.
    before = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    columns = {
        "feature": np.where(leaf, -1, tree["split_indices"]),
        "threshold": np.where(leaf, 0.0, before),
        "children_left": tree["left_children"],
        "children_right": np.where(leaf, -1, tree["right_children"]),
        "value": np.where(leaf, condition.astype(np.float64), 0.0),
    }
    return _arrays(columns)


def _arrays(columns: Mapping[str, Any]) -> TreeArrays:
    feature, left, right = (
        np.asarray(columns[f], dtype=np.int64)
        for f in ("feature", "children_left", "children_right")
    )
    threshold, value = (np.asarray(columns[f], dtype=np.float64) for f in ("threshold", "value"))
    return TreeArrays(feature, threshold, left, right, value)


def unpacked(
    arrays: Mapping[str, NDArray[Any]], n_features: int, link: str, single: bool, prior: float
) -> TreeEnsemble:
    """An ensemble of plain arrays: `FIELDS` of all trees end to end, and ``nodes`` of each."""
    ends = np.cumsum(arrays["nodes"])
    parts = [np.split(arrays[f], ends[:-1]) for f in FIELDS]
    trees = tuple(_arrays(dict(zip(FIELDS, one, strict=True))) for one in zip(*parts, strict=True))
    return TreeEnsemble(trees, n_features, link, single, prior)
