"""Lowers scikit-learn's MLPClassifier to Mlp, with scaling folded into the first layer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from export.fixed import limits
from export.forms.dense import CURVED, RAW
from export.forms.mlp import Mlp
from export.lower.dense import FloatLayer, Reach, folded_inputs, integer_layers, network_curve
from export.lower.margins import margin_threshold
from export.lower.prepare import NotLowerable, Prepared
from features.spec import Feature

NAMES = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "identity"}


def lower(prepared: Prepared) -> Mlp:
    """Lower an ``MLPClassifier`` or ``MLPRegressor``.

    Of two classes the logistic output moves into the decision threshold; of more the largest sum
    before softmax decides; a regressor's sums are its answers.
    """
    estimator = prepared.estimator
    if prepared.binary and (estimator.out_activation_ != "logistic" or estimator.n_outputs_ != 1):
        raise NotLowerable("an MLPClassifier with one logistic output is needed")
    if not prepared.binary and estimator.out_activation_ not in {"softmax", "identity"}:
        raise NotLowerable("an MLPClassifier whose outputs exclude each other is needed")
    hidden = NAMES[estimator.activation]
    names = [hidden] * (len(estimator.coefs_) - 1) + ["identity"]
    layers = [
        FloatLayer(np.asarray(w, dtype=np.float64).T, np.asarray(b, dtype=np.float64), name)
        for w, b, name in zip(estimator.coefs_, estimator.intercepts_, names, strict=True)
    ]
    return scaled_mlp(prepared, layers, _logit_threshold(prepared) if prepared.binary else 0.0)


def scaled_mlp(prepared: Prepared, layers: list[FloatLayer], decision_threshold: float) -> Mlp:
    """Integer network of an estimator's float layers, whose outputs are brought in label order.

    Raises
    ------
    NotLowerable
        When training lacked a label, for which a network has no score.
    """
    last = layers[-1]
    if not prepared.binary:
        if sorted(prepared.places_of) != list(range(len(prepared.labels))) or len(
            prepared.places_of
        ) != len(last.weights):
            raise NotLowerable(
                f"{len(last.weights)} outputs for {len(prepared.labels)} labels: a network needs "
                "one for each, so training must have seen all of them"
            )
        order = np.argsort(prepared.places_of)
        layers = [*layers[:-1], FloatLayer(last.weights[order], last.biases[order], "identity")]
    a, b = prepared.affine()
    weights, added = folded_inputs(
        layers[0].weights, prepared.columns, a, b, len(prepared.features)
    )
    layers[0] = FloatLayer(weights, layers[0].biases + added, layers[0].activation)
    return integer_mlp(prepared.features, prepared.labels, layers, decision_threshold)


def integer_mlp(
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    layers: Sequence[FloatLayer],
    decision_threshold: float,
) -> Mlp:
    """Integer network of float layers over the features' integers.

    Parameters
    ----------
    features : tuple of Feature
    labels : tuple of str
    layers : sequence of FloatLayer
        The first one's weights are per unit of the integers; the last one answers with scores.
    decision_threshold : float
        For the only score; without meaning if there are several.
    """
    low, high = limits(features)
    reach = Reach(0, RAW, low.astype(np.float64), high.astype(np.float64))
    curve = network_curve() if any(layer.activation in CURVED for layer in layers) else None
    made, places = integer_layers(layers, reach, curve)
    return Mlp(features, labels, scaled_threshold(decision_threshold, places), made, curve, places)


def scaled_threshold(decision_threshold: float, places: int) -> int:
    """A decision threshold with ``places`` fractional bits, within what sums can reach."""
    return math.floor(min(max(decision_threshold * 2.0**places, -(2.0**62)), 2.0**62))


def _logit_threshold(prepared: Prepared) -> float:
    if prepared.calibrator is None:
        return margin_threshold(prepared)
    # MLPClassifier has no margins, so calibrators see its probability.
    probability = prepared.output_threshold(0.0, 1.0)
    if not 0 < probability < 1:
        return math.copysign(math.inf, probability - 0.5)
    return math.log(probability / (1 - probability))
