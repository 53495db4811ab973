"""scikit-learn estimator -> ONNX with one input and one output, and the checks of such a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from features.spec import Feature, schema_hash

OPSET = {"": 17, "ai.onnx.ml": 3}
"""Pinned: the newest that ONNX Runtime on long-term distributions runs."""


def convert(
    estimator: Any,
    features: Sequence[Feature],
    name: str,
    labels: tuple[str, str],
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Convert a fitted binary classifier.

    The model's second output of class scores becomes ``probability`` float32 [N] of
    ``labels[1]``; a margin without probabilities goes through the logistic function.

    Parameters
    ----------
    estimator : fitted scikit-learn classifier
    features : sequence of Feature
    name : str
        Graph name.
    labels : tuple of str
    extra : mapping, optional
        More metadata.

    Returns
    -------
    bytes
        The ONNX file.
    """
    from onnx import TensorProto, checker, helper
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    final = estimator.steps[-1][1] if type(estimator).__name__ == "Pipeline" else estimator
    margin = not hasattr(estimator, "predict_proba")
    # LinearSVC is the one converter of these that has no zipmap to switch off.
    options = {} if type(final).__name__ == "LinearSVC" else {"zipmap": False}
    if margin:
        options["raw_scores"] = True
    model = to_onnx(
        estimator,
        initial_types=[("features", FloatTensorType([None, len(features)]))],
        options={id(final): options},
        target_opset=OPSET,
    )
    graph = model.graph
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
    _drop_unused(graph)
    graph.name = name
    graph.doc_string = ""
    helper.set_model_props(model, {**metadata(features, labels), **(extra or {})})
    checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def metadata(features: Sequence[Feature], labels: tuple[str, str]) -> dict[str, str]:
    """What a runtime needs to know to feed the model."""
    return {
        "features": json.dumps([f.name for f in features]),
        "feature_specs": json.dumps([asdict(f) for f in features]),
        "labels": json.dumps(list(labels)),
        "schema_hash": schema_hash(features),
    }


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


def predict(content: bytes, values: NDArray[np.floating], where: str) -> NDArray[np.float64]:
    """Run a file of ours.

    Parameters
    ----------
    content : bytes
        The ONNX file.
    values : float array [n, d]
        Observations; rounded to float32 as the file's input demands.
    where : str
        Its name, for the message.

    Returns
    -------
    float64 array [n]

    Raises
    ------
    UserError
        When ONNX Runtime refuses the file or its inputs and outputs aren't ours.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        answer = session.run(["probability"], {"features": values.astype(np.float32)})[0]
    except Exception as error:
        # ONNX Runtime raises many unrelated types, some of them straight from C++.
        reason = str(error).splitlines()[0][:200]
        raise UserError(f"{where}: ONNX Runtime refuses it: {reason}") from None
    return np.asarray(answer, dtype=np.float64).reshape(-1)


def described(content: bytes, expected_schema: str, where: str) -> None:
    """Refuse a file whose metadata doesn't name the features that the bundle names.

    Raises
    ------
    UserError
        When the schema hash in the file is missing or another.
    """
    import onnx

    try:
        model = onnx.load_from_string(content)
    except Exception as error:
        # Protobuf's own error types differ between its implementations.
        raise UserError(f"{where}: not an ONNX file: {error}") from None
    found = {item.key: item.value for item in model.metadata_props}.get("schema_hash")
    if found != expected_schema:
        raise UserError(f"{where}: made for other features (schema hash {found})")
