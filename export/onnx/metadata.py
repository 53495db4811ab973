"""Writes and reads what an ONNX file states about its features, so that a runtime can feed it."""

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
        Their names, units, scales and ranges are written, and the hash of all that.
    labels : tuple of str
    settings : mapping
        What the features are computed with; the hash covers it.
    states : mapping, optional
        Of a recurrent model: input of a state -> output of the same state after the observation.
        Zeros start a sequence.
    """
    texts = {
        "features": json.dumps([f.name for f in features]),
        "units": json.dumps([f.unit for f in features]),
        "scaling": json.dumps([f.scale for f in features]),
        "feature_specs": json.dumps([asdict(f) for f in features]),
        "labels": json.dumps(list(labels)),
        "feature_settings": json.dumps(dict(settings)),
        "schema_hash": schema_hash(features, settings),
    }
    if states:
        texts |= {
            "state_in": json.dumps(list(states.keys())),
            "state_out": json.dumps(list(states.values())),
        }
    return texts


def _stated_hash(metadata: Mapping[str, str], settings: Mapping[str, Any]) -> str | None:
    """A file's schema hash; from its features if it was made before settings were kept."""
    if "feature_settings" in metadata or "feature_specs" not in metadata:
        return metadata.get("schema_hash")
    return schema_hash(
        [Feature(**spec) for spec in json.loads(metadata["feature_specs"])], settings
    )


def properties(model: Any) -> dict[str, str]:
    """Metadata of a parsed file."""
    return {item.key: item.value for item in model.metadata_props}


def described(
    content: bytes, features: Sequence[Feature], settings: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Refuse a file that doesn't state of itself what a bundle states of it.

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
    metadata = properties(model)
    found = _stated_hash(metadata, settings)
    if found != schema_hash(features, settings):
        raise UserError(f"{where}: made for other features (schema hash {found})")
    states = {key: json.loads(metadata.get(key, "[]")) for key in ("state_in", "state_out")}
    ends = {"state_in": model.graph.input, "state_out": model.graph.output}
    for key, names in states.items():
        missing = set(names) - {end.name for end in ends[key]}
        if missing or len(names) != len(states["state_in"]):
            raise UserError(
                f"{where}: its metadata's {key} don't fit the graph: {', '.join(sorted(missing))}"
            )
    opset = {item.domain or "ai.onnx": item.version for item in model.opset_import}
    return {"opset": opset, "states": len(states["state_in"])}


def states_of(content: bytes, where: str) -> list[dict[str, Any]]:
    """What a recurrent file remembers, as :class:`models.output.State` has it."""
    model = parsed(content, where)
    metadata = properties(model)
    names = [json.loads(metadata.get(key, "[]")) for key in ("state_in", "state_out")]
    shapes = {
        given.name: [size.dim_value for size in given.type.tensor_type.shape.dim]
        for given in model.graph.input
    }
    return [
        {"given": given, "returned": returned, "width": shapes[given][-1]}
        for given, returned in zip(*names, strict=True)
    ]
