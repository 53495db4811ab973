"""Writes the intermediate form as canonical JSON, and reads such JSON with suspicion.

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
from export.fixed import INT32_MAX, limits
from export.forms import FORMS, form_module
from export.ir import MAX_FEATURES, Form
from export.reading import Malformed, integer, listed
from features.spec import Feature

FORMAT = "cczoo-form"
VERSION = 1
MAX_BYTES = 64 << 20
MAX_TEXT = 4096
_HEAD = {"format", "version", "kind", "features", "labels", "cut"}
"""Keys that every document has; ``cut`` is the form's ``decision_threshold``."""

_text = json.JSONEncoder(allow_nan=False).encode


def canonical(value: Any, indent: str = "") -> str:
    """JSON text with sorted keys, lists of scalars on one line and all else one item a line."""
    inner = indent + " "
    if isinstance(value, dict | Mapping) and value:
        items = [f"{inner}{_text(k)}: {canonical(value[k], inner)}" for k in sorted(value)]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and any(isinstance(v, list | tuple | dict) for v in value):
        return "[\n" + ",\n".join(inner + canonical(v, inner) for v in value) + f"\n{indent}]"
    return _text(value)


def dumps(form: Form) -> str:
    """Write a form as canonical JSON text."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": form.kind,
        "features": [asdict(f) for f in form.features],
        "labels": list(form.labels),
        "cut": form.decision_threshold,
        **form_module(form.kind).body(form),
    }
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
            parse_float=_finite_float,
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
    except Malformed as error:
        raise UserError(f"{where}: {error}: not a form of cczoo, export it again") from None


def _form(document: Any) -> Form:
    if not isinstance(document, dict):
        raise Malformed("an object was expected at the top")
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise Malformed(f"format {FORMAT!r} version {VERSION} was expected")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in FORMS:
        raise Malformed(str(unknown_name("kind", str(kind), FORMS)))
    module = form_module(kind)
    wanted = _HEAD | module.BODY
    if set(document) != wanted:
        odd = ", ".join(sorted(set(document) ^ wanted))
        raise Malformed(f"unknown or missing keys: {odd}")
    features = tuple(_feature(f, i) for i, f in enumerate(listed(document["features"], "features")))
    if not 1 <= len(features) <= MAX_FEATURES or len({f.name for f in features}) != len(features):
        raise Malformed(f"features: 1 to {MAX_FEATURES} different names were expected")
    try:
        limits(features)
    except UserError as error:
        raise Malformed(str(error)) from None
    labels = listed(document["labels"], "labels")
    if not labels or not all(map(_printable, labels)):
        raise Malformed("labels: printable names were expected")
    decision_threshold = integer(document["cut"], "cut", -(2**63), 2**63 - 1)
    return module.parse(document, features, tuple(labels), decision_threshold)


def _feature(item: Any, index: int) -> Feature:
    where = f"features[{index}]"
    names = {f.name for f in fields(Feature)}
    if not isinstance(item, dict) or set(item) != names:
        raise Malformed(f"{where}: an object with {', '.join(sorted(names))} was expected")
    for key in ("name", "unit", "source", "doc"):
        if item[key] != "" and not _printable(item[key]):
            raise Malformed(f"{where}.{key}: a line of printable text was expected")
    if not item["name"] or not item["name"].isidentifier() or not item["name"].isascii():
        raise Malformed(f"{where}.name: letters, digits and underscores were expected")
    for key in ("low", "high"):
        number = item[key]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise Malformed(f"{where}.{key}: a number was expected")
        if not math.isfinite(number):
            raise Malformed(f"{where}.{key}: a finite number was expected")
    scale = integer(item["scale"], f"{where}.scale", 1, INT32_MAX)
    return Feature(**(item | {"scale": scale}))


def _printable(text: Any) -> bool:
    """A line of text, which stands in comments of generated code."""
    return isinstance(text, str) and 0 < len(text) <= MAX_TEXT and text.isprintable()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} isn't a number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("an integer has more than 64 bits")
    return int(digits)
