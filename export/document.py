"""The intermediate form as JSON: canonical when written, suspicious when read.

Canonical means sorted keys and one node, feature or weight per line, so that two models can be
compared with ``diff`` and a hash of the text is a hash of the model. Inner nodes are
``[feature, threshold, right child]`` (the left child is the next node), leaves ``[value]``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from data.errors import UserError, unknown_name
from export.fixed import INT32_MAX, INT32_MIN, limits
from export.ir import FORMS, MAX_DEPTH, MAX_FEATURES, MAX_NODES, Forest, Form, Linear, Nodes, Tree
from features.spec import Feature

FORMAT = "cczoo-form"
VERSION = 1
MAX_BYTES = 64 << 20
_HEAD = {"format", "version", "kind", "features", "labels", "cut"}
_BODY = {"tree": {"nodes"}, "forest": {"trees"}, "linear": {"weights", "bias", "shift"}}


def canonical(value: Any, indent: str = "") -> str:
    """JSON text with sorted keys, lists of scalars on one line and all else one item a line."""
    inner = indent + " "
    if isinstance(value, Mapping) and value:
        items = [f"{inner}{json.dumps(k)}: {canonical(value[k], inner)}" for k in sorted(value)]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and any(isinstance(v, list | tuple | dict) for v in value):
        return "[\n" + ",\n".join(inner + canonical(v, inner) for v in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def dumps(form: Form) -> str:
    """Write a form as canonical JSON text."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": form.kind,
        "features": [asdict(f) for f in form.features],
        "labels": list(form.labels),
        "cut": form.cut,
    }
    if isinstance(form, Tree):
        document["nodes"] = _node_lists(form.nodes)
    elif isinstance(form, Forest):
        document["trees"] = [_node_lists(nodes) for nodes in form.trees]
    else:
        document |= {"weights": list(form.weights), "bias": form.bias, "shift": form.shift}
    return canonical(document) + "\n"


def model_hash(form: Form) -> str:
    """SHA-256 of the canonical text: the identity of a model."""
    return hashlib.sha256(dumps(form).encode()).hexdigest()


def parse_json(text: str | bytes, where: str) -> Any:
    """JSON without its traps: no duplicate keys, no NaN, bounded size and nesting.

    Raises
    ------
    UserError
        When ``text`` isn't such a document.
    """
    if len(text) > MAX_BYTES:
        raise UserError(f"{where}: larger than {MAX_BYTES >> 20} MiB: not a model of cczoo")
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_no_constant,
            parse_int=_bounded_int,
        )
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UserError(f"{where}: not a JSON document: {reason}: export it again") from None


def loads(text: str | bytes, where: str) -> Form:
    """Read a form.

    Parameters
    ----------
    text : str or bytes
        The JSON document.
    where : str
        Its file's name, for the message.

    Returns
    -------
    Form
        A form that holds every promise of its class.

    Raises
    ------
    UserError
        For anything else: what is wrong and where in the document.
    """
    document = parse_json(text, where)
    try:
        return _form(document)
    except _Malformed as error:
        raise UserError(f"{where}: {error}: not a form of cczoo, export it again") from None


class _Malformed(Exception):
    """What is wrong in the document, with the place in it."""


def _form(document: Any) -> Form:
    if not isinstance(document, dict):
        raise _Malformed("an object was expected at the top")
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise _Malformed(f"format {FORMAT!r} version {VERSION} was expected")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in FORMS:
        raise _Malformed(str(unknown_name("kind", str(kind), FORMS)))
    wanted = _HEAD | _BODY[kind]
    if set(document) != wanted:
        odd = ", ".join(sorted(set(document) ^ wanted))
        raise _Malformed(f"unknown or missing keys: {odd}")
    features = tuple(_feature(f, i) for i, f in enumerate(_list(document["features"], "features")))
    if not 1 <= len(features) <= MAX_FEATURES or len({f.name for f in features}) != len(features):
        raise _Malformed(f"features: 1 to {MAX_FEATURES} different names were expected")
    try:
        limits(features)
    except UserError as error:
        raise _Malformed(str(error)) from None
    labels = _list(document["labels"], "labels")
    if len(labels) != 2 or not all(isinstance(label, str) and label for label in labels):
        raise _Malformed("labels: two names were expected")
    pair = (labels[0], labels[1])
    cut = _integer(document["cut"], "cut", -(2**63), 2**63 - 1)
    if kind == "tree":
        return Tree(features, pair, cut, _nodes(document["nodes"], len(features), "nodes"))
    if kind == "forest":
        listed = _list(document["trees"], "trees")
        trees = tuple(_nodes(t, len(features), f"trees[{i}]") for i, t in enumerate(listed))
        if not trees or sum(map(len, trees)) > MAX_NODES:
            raise _Malformed(f"trees: 1 tree at least and {MAX_NODES} nodes at most were expected")
        return Forest(features, pair, cut, trees)
    return _linear(document, features, pair, cut)


def _linear(
    document: dict[str, Any], features: tuple[Feature, ...], labels: tuple[str, str], cut: int
) -> Linear:
    listed = _list(document["weights"], "weights")
    weights = tuple(
        _integer(w, f"weights[{i}]", INT32_MIN + 1, INT32_MAX) for i, w in enumerate(listed)
    )
    bias = _integer(document["bias"], "bias", -(2**62), 2**62)
    shift = _integer(document["shift"], "shift", 0, 62)
    if len(weights) != len(features):
        raise _Malformed("weights: one per feature was expected")
    if sum(map(abs, weights)) * 2**31 + abs(bias) >= 2**63:
        raise _Malformed("weights: the sum could overflow 64 bits")
    return Linear(features, labels, cut, weights, bias, shift)


def _nodes(listed: Any, n_features: int, where: str) -> Nodes:
    rows = _list(listed, where)
    if not 1 <= len(rows) <= MAX_NODES or len(rows) % 2 == 0:
        raise _Malformed(f"{where}: a tree has an odd number of nodes, {MAX_NODES} at most")
    feature, value, right = [-1] * len(rows), [0] * len(rows), [0] * len(rows)
    # Preorder needs no search for cycles: a right child must start exactly where the left
    # subtree ended, so the stack of right children still to come describes the whole rest.
    pending: list[int] = []
    for i, row in enumerate(rows):
        here = f"{where}[{i}]"
        row = _list(row, here)
        if len(row) == 3:
            feature[i] = _integer(row[0], here, 0, n_features - 1)
            value[i] = _integer(row[1], here, INT32_MIN, INT32_MAX)
            right[i] = _integer(row[2], here, i + 2, len(rows) - 1)
            pending.append(right[i])
            if len(pending) > MAX_DEPTH:
                raise _Malformed(f"{here}: deeper than {MAX_DEPTH}")
        elif len(row) == 1:
            value[i] = _integer(row[0], here, INT32_MIN, INT32_MAX)
            if i + 1 < len(rows) and (not pending or pending.pop() != i + 1):
                raise _Malformed(f"{here}: the next node isn't the right child that was announced")
        else:
            raise _Malformed(f"{here}: [feature, threshold, right] or [value] was expected")
    if pending:
        raise _Malformed(f"{where}: the last subtree is missing")
    nodes = Nodes(tuple(feature), tuple(value), tuple(right))
    if max(nodes.depths) > MAX_DEPTH:
        raise _Malformed(f"{where}: deeper than {MAX_DEPTH}")
    return nodes


def _feature(item: Any, index: int) -> Feature:
    where = f"features[{index}]"
    names = {f.name for f in fields(Feature)}
    if not isinstance(item, dict) or set(item) != names:
        raise _Malformed(f"{where}: an object with {', '.join(sorted(names))} was expected")
    for key in ("name", "unit", "source", "doc"):
        if not isinstance(item[key], str):
            raise _Malformed(f"{where}.{key}: text was expected")
    if not item["name"] or not item["name"].isidentifier() or not item["name"].isascii():
        raise _Malformed(f"{where}.name: letters, digits and underscores were expected")
    for key in ("low", "high"):
        number = item[key]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _Malformed(f"{where}.{key}: a number was expected")
        if not math.isfinite(number):
            raise _Malformed(f"{where}.{key}: a finite number was expected")
    scale = _integer(item["scale"], f"{where}.scale", 1, INT32_MAX)
    return Feature(**(item | {"scale": scale}))


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Malformed(f"{where}: a list was expected")
    return value


def _integer(value: Any, where: str, lowest: int, highest: int) -> int:
    if type(value) is not int or not lowest <= value <= highest:
        raise _Malformed(f"{where}: an integer in {lowest}..{highest} was expected")
    return value


def _node_lists(nodes: Nodes) -> list[list[int]]:
    rows = zip(nodes.feature, nodes.value, nodes.right, strict=True)
    return [[value] if feature < 0 else [feature, value, right] for feature, value, right in rows]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} isn't a number")


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("an integer has more than 64 bits")
    return int(digits)
