"""Takes off what stands around an estimator before lowering: scalers, selectors, calibrators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.fixed import Q16, limits
from features.spec import Feature

Floats = NDArray[np.float64]


class NotLowerable(Exception):
    """The model has no integer form; the message says why."""


@dataclass(frozen=True)
class Prepared:
    """A bare estimator and how its inputs and its threshold relate to the model's.

    Attributes
    ----------
    estimator : fitted estimator
        Without pipeline and calibration.
    features : tuple of Feature
        Features of the whole model.
    labels : tuple of str
        Names of the classes, or of a regressor's outputs.
    places_of : tuple of int
        Label of each of the estimator's classes or outputs.
    columns : tuple of int
        Input ``j`` of the estimator is computed from feature ``columns[j]``.
    steps : tuple of (center, spread)
        Float64 arrays [inputs]: each step maps ``z`` to ``(z - center) / spread``.
    threshold : float
        On the calibrated probability of two classes.
    calibrator : callable, optional
        Bare estimator's output -> calibrated probability, elementwise and non-decreasing.
    regressor : bool
        Its outputs are real numbers, one per label.
    """

    estimator: Any
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    places_of: tuple[int, ...]
    columns: tuple[int, ...]
    steps: tuple[tuple[Floats, Floats], ...]
    threshold: float
    calibrator: Callable[[Floats], Floats] | None = None
    regressor: bool = False

    @property
    def binary(self) -> bool:
        """Whether one score and a decision threshold are the whole answer."""
        return len(self.labels) == 2 and not self.regressor

    def seen(self, j: int, integer: int) -> float:
        """What the estimator's input ``j`` is when the feature's integer is ``integer``."""
        z = integer / self.features[self.columns[j]].scale
        for center, spread in self.steps:
            z = (z - float(center[j])) / float(spread[j])
        return z

    def affine(self) -> tuple[Floats, Floats]:
        """``a, b`` such that input ``j`` is ``a[j] * integer + b[j]``."""
        a = np.array([1.0 / self.features[c].scale for c in self.columns])
        b = np.zeros(len(self.columns))
        for center, spread in self.steps:
            a, b = a / spread, (b - center) / spread
        return a, b

    def last_left(self, j: int, threshold: float, *, single: bool = True) -> int:
        """Largest integer that goes left at ``input j <= threshold``.

        Found by bisection on what the estimator itself computes (scikit-learn's trees see their
        input rounded to float32), so the integer tree turns exactly where the float one does.
        One below the feature's range means that nothing in it goes left.
        """
        low, high = (int(bound[self.columns[j]]) for bound in limits(self.features))
        low -= 1
        while low < high:
            middle = (low + high + 1) // 2
            z = self.seen(j, middle)
            if (float(np.float32(z)) if single else z) <= threshold:
                low = middle
            else:
                high = middle - 1
        return low

    def calibrated(self, outputs: Floats) -> Floats:
        """Probability of ``labels[1]`` from the bare estimator's outputs."""
        return outputs if self.calibrator is None else self.calibrator(outputs)

    def output_threshold(self, low: float, high: float) -> float:
        """The bare estimator's output above which the probability is above ``threshold``.

        Searched in ``low..high``; infinite if all or no outputs are above.
        """
        calibrator = self.calibrator
        if calibrator is None:
            raise ValueError("no calibrator: the threshold is on the output itself")

        def above(output: float) -> bool:
            return bool(calibrator(np.array([output]))[0] > self.threshold)

        if above(low):
            return -math.inf
        if not above(high):
            return math.inf
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (low, middle) if above(middle) else (middle, high)
        return low


def prepare(
    estimator: Any, features: tuple[Feature, ...], labels: tuple[str, ...], threshold: float
) -> Prepared:
    """Take pipelines and calibration off.

    Raises
    ------
    NotLowerable
        For steps that aren't per-feature scalings or selections, ensembles of calibrated
        models, and models whose classes aren't the labels.
    """
    regressor, placed = is_regressor(estimator), places_of(estimator, labels)
    columns = np.arange(len(features))
    steps: list[tuple[Floats, Floats]] = []
    calibrator: Callable[[Floats], Floats] | None = None
    while True:
        name = type(estimator).__name__
        if name == "Pipeline":
            for _, step in estimator.steps[:-1]:
                columns, steps = _through(step, columns, steps)
            estimator = estimator.steps[-1][1]
        elif name == "CalibratedClassifierCV":
            if calibrator is not None or len(estimator.calibrated_classifiers_) != 1:
                raise NotLowerable("an average of calibrated models: use ensemble=False")
            inner = estimator.calibrated_classifiers_[0]
            calibrator = _predictor(inner.calibrators[0])
            estimator = inner.estimator
        elif name in {"FrozenEstimator", "GridSearchCV", "RandomizedSearchCV"}:
            estimator = getattr(estimator, "best_estimator_", None) or estimator.estimator
        else:
            break
    if getattr(estimator, "n_features_in_", len(columns)) != len(columns):
        raise NotLowerable(
            f"the model takes {estimator.n_features_in_} columns, not {len(columns)}"
        )
    if calibrator is not None and len(labels) != 2:
        raise NotLowerable("calibrated probabilities of other than two classes have no form")
    return Prepared(
        estimator,
        features,
        labels,
        placed,
        tuple(map(int, columns)),
        tuple(steps),
        threshold,
        calibrator,
        regressor,
    )


def is_regressor(estimator: Any) -> bool:
    """Whether a fitted estimator answers with real numbers: it knows no classes."""
    return getattr(estimator, "classes_", None) is None


def places_of(estimator: Any, labels: tuple[str, ...]) -> tuple[int, ...]:
    """Label of each of a fitted estimator's classes, or of a regressor's outputs.

    Two labels are those of the smaller and the larger class. With more, classes are matched by
    name, and integers are indices of labels: training may not have seen every one of them.

    Raises
    ------
    NotLowerable
        When its classes aren't the labels.
    """
    if is_regressor(estimator):
        return tuple(range(len(labels)))
    found = list(estimator.classes_)
    if isinstance(found[0], np.ndarray):
        raise NotLowerable("a classifier with several targets: train one for each")
    if len(labels) == 2 and len(found) != 2:
        raise NotLowerable(f"two classes are needed, the model has {len(found)}")
    if isinstance(found[0], str):
        if (len(labels) == 2 and tuple(found) != labels) or not set(found) <= set(labels):
            raise NotLowerable(f"the model's classes {found} aren't {list(labels)}, in this order")
        return tuple(labels.index(name) for name in found)
    if len(labels) == 2:
        return (0, 1)
    if not all(float(number).is_integer() and 0 <= number < len(labels) for number in found):
        raise NotLowerable(f"the model's classes {found} aren't indices of {len(labels)} labels")
    return tuple(int(number) for number in found)


def _through(
    step: Any, columns: NDArray[np.int64], steps: list[tuple[Floats, Floats]]
) -> tuple[NDArray[np.int64], list[tuple[Floats, Floats]]]:
    name = type(step).__name__
    if step == "passthrough" or name == "SimpleImputer":
        # An integer is never missing, so an imputer has nothing to do.
        return columns, steps
    if hasattr(step, "get_support"):
        kept = step.get_support(indices=True)
        return columns[kept], [(center[kept], spread[kept]) for center, spread in steps]
    n = len(columns)
    if name in {"StandardScaler", "RobustScaler"}:
        center = getattr(step, "mean_" if name == "StandardScaler" else "center_", None)
        spread = step.scale_
    elif name == "MinMaxScaler":
        center, spread = -step.min_ / step.scale_, 1 / step.scale_
    elif name == "MaxAbsScaler":
        center, spread = None, step.scale_
    else:
        raise NotLowerable(f"the step {name} isn't a scaling or a selection of single features")
    center = np.zeros(n) if center is None else np.asarray(center, dtype=np.float64)
    spread = np.ones(n) if spread is None else np.asarray(spread, dtype=np.float64)
    return columns, [*steps, (center, spread)]


def _predictor(calibrator: Any) -> Callable[[Floats], Floats]:
    return lambda outputs: np.asarray(calibrator.predict(outputs), dtype=np.float64)


def in_q16(probability: Floats, threshold: float) -> tuple[NDArray[np.int64], int]:
    """Probabilities and threshold in Q16, with every comparison kept as it was.

    Rounding alone would move a probability that is just above the threshold onto it.
    """
    decision_threshold = math.floor(threshold * Q16 + 0.5)
    q16 = np.floor(np.asarray(probability) * Q16 + 0.5).astype(np.int64)
    return np.where(
        probability > threshold,
        np.maximum(q16, decision_threshold + 1),
        np.minimum(q16, decision_threshold),
    ), decision_threshold
