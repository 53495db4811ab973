"""scikit-learn estimator -> ONNX with one input and one output, and the checks of such a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from data.errors import UserError
from features.spec import Feature, schema_hash
from models.onnx_safe import parsed

OPSET = {"": 17, "ai.onnx.ml": 3}
"""Pinned: the newest that ONNX Runtime on long-term distributions runs."""
TREE_LIBRARIES = frozenset({"LGBMClassifier", "XGBClassifier", "TreeEnsemble"})
"""Classifiers that skl2onnx doesn't know; see :mod:`export.onnx_trees`."""


def convert(
    estimator: Any,
    features: Sequence[Feature],
    name: str,
    labels: tuple[str, ...],
    settings: Mapping[str, Any],
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
    settings : mapping
        What the features are computed with.
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

    from export.onnx_svm import register

    register()
    final = estimator.steps[-1][1] if type(estimator).__name__ == "Pipeline" else estimator
    margin = not hasattr(estimator, "predict_proba")
    if type(final).__name__ in TREE_LIBRARIES:
        from export.onnx_trees import convert_trees

        return convert_trees(estimator, features, name, labels, settings, extra)
    # LinearSVC is the one converter of these that has no zipmap to switch off.
    options: dict[str, Any] = {} if type(final).__name__ == "LinearSVC" else {"zipmap": False}
    if margin:
        options["raw_scores"] = True
    if type(final).__name__ == "KNeighborsClassifier":
        # Distances by one operator of ONNX Runtime: the standard's way is a loop, which no file
        # that may be a stranger's is allowed.
        options["optim"] = "cdist"
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


def metadata(
    features: Sequence[Feature],
    labels: tuple[str, ...],
    settings: Mapping[str, Any],
    states: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """What a runtime needs to know to feed the model.

    Parameters
    ----------
    features : sequence of Feature
        Their names, units, scales and ranges are told, and the hash of all that.
    labels : tuple of str
    settings : mapping
        What the features are computed with, of the hash too.
    states : mapping, optional
        Of a recurrent model: input of a state -> output of the same state after the observation.
        Zeros start a sequence.
    """
    told = {
        "features": json.dumps([f.name for f in features]),
        "units": json.dumps([f.unit for f in features]),
        "scaling": json.dumps([f.scale for f in features]),
        "feature_specs": json.dumps([asdict(f) for f in features]),
        "labels": json.dumps(list(labels)),
        "feature_settings": json.dumps(dict(settings)),
        "schema_hash": schema_hash(features, settings),
    }
    if states:
        told |= {
            "state_in": json.dumps(list(states.keys())),
            "state_out": json.dumps(list(states.values())),
        }
    return told


def _stated_hash(said: Mapping[str, str], settings: Mapping[str, Any]) -> str | None:
    """A file's schema hash; from its features where it was made before settings were kept."""
    if "feature_settings" in said or "feature_specs" not in said:
        return said.get("schema_hash")
    return schema_hash([Feature(**spec) for spec in json.loads(said["feature_specs"])], settings)


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


def properties(model: Any) -> dict[str, str]:
    """Metadata of a parsed file."""
    return {item.key: item.value for item in model.metadata_props}


def described(
    content: bytes, features: Sequence[Feature], settings: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Refuse a file that doesn't say of itself what a bundle says of it.

    Parameters
    ----------
    content : bytes
    features : sequence of Feature
    settings : mapping
        What the bundle says that they are computed with.
    where : str
        The file's name, for the message.

    Returns
    -------
    dict
        ``opset``: versions by domain, and ``states``: how many inputs are states.

    Raises
    ------
    UserError
        When the schema hash in the file is missing or another, or a state that the metadata name
        isn't an input and an output of the graph.
    """
    model = parsed(content, where)
    said = properties(model)
    found = _stated_hash(said, settings)
    if found != schema_hash(features, settings):
        raise UserError(f"{where}: made for other features (schema hash {found})")
    states = {key: json.loads(said.get(key, "[]")) for key in ("state_in", "state_out")}
    ends = {"state_in": model.graph.input, "state_out": model.graph.output}
    for key, names in states.items():
        missing = set(names) - {end.name for end in ends[key]}
        if missing or len(names) != len(states["state_in"]):
            raise UserError(
                f"{where}: its metadata's {key} don't fit the graph: {', '.join(sorted(missing))}"
            )
    opset = {item.domain or "ai.onnx": item.version for item in model.opset_import}
    return {"opset": opset, "states": len(states["state_in"])}
