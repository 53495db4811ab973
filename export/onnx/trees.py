"""Converts trees given as arrays to ONNX: one tree ensemble over the features as they are.

Scalings before the trees move into their thresholds, each to the largest float32 that goes left,
so that the file turns where the model does on every float32 observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from export.lower.ensemble import as_added, as_ensemble
from export.lower.prepare import NotLowerable, Prepared, prepare
from export.onnx.graph import graph_file
from features.spec import Feature
from models.trees import MEAN, AddedTrees, TreeEnsemble

Floats = NDArray[np.float64]
UNSEEN = -1e9
"""Margin of a class that training lacked."""


def convert_trees(
    estimator: Any,
    features: Sequence[Feature],
    name: str,
    labels: tuple[str, ...],
    settings: Mapping[str, Any],
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Convert LightGBM's, XGBoost's or a `TreeEnsemble`; as :func:`export.onnx.file.convert`.

    Raises
    ------
    UserError
        When they are trees of a kind that has no such form.
    """
    from onnx import TensorProto, helper

    try:
        prepared = prepare(estimator, tuple(features), labels, 0.5)
        attributes, link = _of_two(prepared) if prepared.binary else _of_several(prepared)
    except NotLowerable as error:
        raise UserError(f"model {name!r}: no conversion to ONNX: {error}") from None
    priors = attributes.pop("priors", [])
    ensemble = helper.make_node(
        "TreeEnsembleRegressor", ["features"], ["sums"], domain="ai.onnx.ml", **attributes
    )
    constants = []
    columns = None if prepared.binary else len(labels)
    if prepared.binary:
        ensemble.output[0] = "scores"
        constants = [helper.make_tensor("flat", TensorProto.INT64, [1], [-1])]
        nodes = [
            ensemble,
            helper.make_node("Reshape", ["scores", "flat"], ["chosen"]),
            helper.make_node(link, ["chosen"], ["probability"]),
        ]
    else:
        # Not as base_values: ONNX Runtime leaves them out of a sum that no tree adds to.
        constants = [helper.make_tensor("priors", TensorProto.FLOAT, [len(priors)], priors)]
        nodes = [
            ensemble,
            helper.make_node("Add", ["sums", "priors"], ["margins"]),
            helper.make_node(link, ["margins"], ["scores"]),
        ]
    return graph_file(
        nodes, constants, features, name, labels, settings, columns=columns, extra=extra
    )


def _of_two(prepared: Prepared) -> tuple[dict[str, Any], str]:
    """Attributes of the operator, and what makes probabilities of its sums."""
    ensemble = as_ensemble(prepared)
    attributes = {
        "n_targets": 1,
        "aggregate_function": "AVERAGE" if ensemble.link == MEAN else "SUM",
        "base_values": [float(ensemble.prior)],
        **_attributes(prepared, ensemble, [0] * len(ensemble.trees)),
    }
    return attributes, "Identity" if ensemble.link == MEAN else "Sigmoid"


def _of_several(prepared: Prepared) -> tuple[dict[str, Any], str]:
    """The same with one sum per label; a class that training lacked has no probability."""
    ensemble = as_added(prepared)
    base = dict(zip(prepared.places_of, ensemble.priors, strict=True))
    targets = [prepared.places_of[output] for output in ensemble.outputs]
    attributes = {
        "n_targets": len(prepared.labels),
        "aggregate_function": "SUM",
        "priors": [base.get(label, UNSEEN) for label in range(len(prepared.labels))],
        **_attributes(prepared, ensemble, targets),
    }
    return attributes, "Identity" if prepared.regressor else "Softmax"


def _attributes(
    prepared: Prepared, ensemble: TreeEnsemble | AddedTrees, targets: Sequence[int]
) -> dict[str, list[Any]]:
    """Nodes and leaves of all trees, as the operator wants them; the target of each tree."""
    found: dict[str, list[Any]] = {}
    for number, tree in enumerate(ensemble.trees):
        leaf = tree.children_left < 0
        ids = np.arange(len(leaf))
        inputs = np.where(leaf, 0, tree.feature)
        columns = np.asarray(prepared.columns)[inputs]
        bounds = largest_left(prepared, inputs, tree.threshold, single=ensemble.single)
        parts: dict[str, list[Any]] = {
            "nodes_treeids": [number] * len(ids),
            "nodes_nodeids": ids.tolist(),
            "nodes_featureids": columns.tolist(),
            "nodes_values": np.where(leaf, 0.0, bounds).tolist(),
            "nodes_modes": ["LEAF" if one else "BRANCH_LEQ" for one in leaf],
            "nodes_truenodeids": np.where(leaf, 0, tree.children_left).tolist(),
            "nodes_falsenodeids": np.where(leaf, 0, tree.children_right).tolist(),
            "target_treeids": [number] * int(leaf.sum()),
            "target_nodeids": ids[leaf].tolist(),
            "target_ids": [targets[number]] * int(leaf.sum()),
            "target_weights": tree.value[leaf].tolist(),
        }
        for key, part in parts.items():
            found.setdefault(key, []).extend(part)
    return found


def largest_left(
    prepared: Prepared, inputs: NDArray[np.int64], threshold: Floats, *, single: bool
) -> Floats:
    """Largest finite float32 of the feature whose input is at most the threshold, per node.

    The answer is a float64 array [nodes], found by bisection over the order of all float32 numbers,
    as the trees' library rounds.
    """
    top = int(np.array(np.finfo(np.float32).max).view(np.int32))
    low = np.full(len(inputs), -top - 1, dtype=np.int64)
    high = np.full(len(inputs), top, dtype=np.int64)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        z = _ordered(middle).astype(np.float64)
        for center, spread in prepared.steps:
            z = (z - center[inputs]) / spread[inputs]
        seen = z.astype(np.float32).astype(np.float64) if single else z
        left = seen <= threshold
        low, high = np.where(left, middle, low), np.where(left, high, middle - 1)
    return _ordered(np.maximum(low, -top)).astype(np.float64)


def _ordered(number: NDArray[np.int64]) -> NDArray[np.float32]:
    """The float32 at a place in their order; 0 is zero."""
    size = np.abs(number).astype(np.int32).view(np.float32)
    return np.where(number < 0, -size, size).astype(np.float32)
