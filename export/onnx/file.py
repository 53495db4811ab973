"""Converts a scikit-learn estimator to ONNX with one input and one output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data.errors import UserError
from export.lower.prepare import NotLowerable, is_regressor, places_of
from export.onnx.metadata import OPSET, metadata
from export.onnx.real_answers import real_answers
from features.spec import Feature

TREE_LIBRARIES = frozenset(
    {"LGBMClassifier", "LGBMRegressor", "XGBClassifier", "XGBRegressor", "TreeEnsemble"}
)
"""Estimators that skl2onnx doesn't know; see :mod:`export.onnx.trees`."""


def convert(
    estimator: Any,
    features: Sequence[Feature],
    name: str,
    labels: tuple[str, ...],
    settings: Mapping[str, Any],
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Convert a fitted classifier or regressor.

    Of two classes the model's second class score becomes ``probability`` (of ``labels[1]``, float32
    array [N]); a margin without probabilities goes through the logistic function. Of more classes
    the probabilities, and of a regressor its outputs, become ``scores`` (float32 array
    [N, labels]).

    Parameters
    ----------
    estimator : fitted scikit-learn classifier or regressor
    features : sequence of Feature
    name : str
        Graph name.
    labels : tuple of str
        With more than two, classes are labels or indices of labels.
    settings : mapping
        What the features are computed with.
    extra : mapping, optional
        More metadata.

    Returns
    -------
    bytes
        The ONNX file.

    Raises
    ------
    UserError
        When its classes or outputs aren't the labels, or it has no probabilities of them.
    """
    from onnx import checker, helper
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    from export.onnx.svm import register

    register()
    if is_regressor(estimator):
        # Its class doesn't say how many outputs it has, but an answer does.
        real_answers(estimator, np.zeros((1, len(features))), labels, name)
    final = estimator.steps[-1][1] if type(estimator).__name__ == "Pipeline" else estimator
    margin = not hasattr(estimator, "predict_proba")
    if type(final).__name__ in TREE_LIBRARIES:
        from export.onnx.trees import convert_trees

        return convert_trees(estimator, features, name, labels, settings, extra)
    # LinearSVC is the one converter of these that has no zipmap to switch off.
    options: dict[str, Any] = {} if type(final).__name__ == "LinearSVC" else {"zipmap": False}
    several = len(labels) != 2 or is_regressor(estimator)
    if is_regressor(estimator):
        options = {}
    elif margin and several:
        raise UserError(f"model {name!r}: it has no probabilities of {len(labels)} classes")
    elif margin:
        options["raw_scores"] = True
    if type(final).__name__ == "KNeighborsClassifier":
        # Distances by one operator of ONNX Runtime: the standard's way is a loop, which no file
        # that may be a stranger's is allowed.
        options["optim"] = "cdist"
    model = to_onnx(
        estimator,
        initial_types=[("features", FloatTensorType([None, len(features)]))],
        options={id(final): options} if options else None,
        target_opset=OPSET,
    )
    graph = model.graph
    if several:
        _several_scores(graph, estimator, labels, name)
    else:
        _probability_of_last(graph, margin)
    _drop_unused(graph)
    # The converter names the default domain twice, which quantisers refuse, and takes the domains
    # from a set: unsorted, one run's file would differ from the next one's.
    opset = {item.domain: item for item in model.opset_import}
    del model.opset_import[:]
    model.opset_import.extend(opset[domain] for domain in sorted(opset, reverse=True))
    graph.name = name
    graph.doc_string = ""
    helper.set_model_props(model, {**metadata(features, labels, settings), **(extra or {})})
    checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _probability_of_last(graph: Any, margin: bool) -> None:
    """Let a graph of two classes end with ``probability`` of the last."""
    from onnx import TensorProto, helper

    scores = graph.output[1].name
    nodes = [
        helper.make_node("Gather", [scores, "last"], ["column"], axis=1, name="of_last_class"),
        helper.make_node("Reshape", ["column", "flat"], ["chosen"], name="flat_scores"),
        helper.make_node("Sigmoid" if margin else "Identity", ["chosen"], ["probability"]),
    ]
    graph.initializer.extend(
        [
            helper.make_tensor("last", TensorProto.INT64, [1], [-1]),
            helper.make_tensor("flat", TensorProto.INT64, [1], [-1]),
        ]
    )
    graph.node.extend(nodes)
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["N"]))


def _several_scores(graph: Any, estimator: Any, labels: tuple[str, ...], name: str) -> None:
    """Let a graph end with ``scores``, a column per label; 0 of a class that training lacked."""
    from onnx import TensorProto, helper, numpy_helper

    try:
        placed = places_of(estimator, labels)
    except NotLowerable as error:
        raise UserError(f"model {name!r}: no conversion to ONNX: {error}") from None
    columns = np.zeros((len(placed), len(labels)), dtype=np.float32)
    columns[np.arange(len(placed)), list(placed)] = 1
    found = graph.output[0 if is_regressor(estimator) else 1].name
    graph.initializer.extend(
        [
            helper.make_tensor("wide", TensorProto.INT64, [2], [-1, len(placed)]),
            numpy_helper.from_array(columns, "labels"),
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Reshape", [found, "wide"], ["answers"], name="a_row_each"),
            helper.make_node(
                "MatMul", ["answers", "labels"], ["scores"], name="a_column_per_label"
            ),
        ]
    )
    del graph.output[:]
    shape: list[str | int | None] = ["N", len(labels)]
    graph.output.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape))


def _drop_unused(graph: Any) -> None:
    """Remove nodes and constants that no output needs (the label's branch)."""
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            kept.append(node)
    constants = [c for c in graph.initializer if c.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(constants)
