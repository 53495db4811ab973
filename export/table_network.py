"""Writes and reads what a table file holds of a network; see :mod:`export.table_file`.

The C reader is ``export/runtime/cczoo_network.c``.
"""

from __future__ import annotations

import struct
from typing import Any

from export.forms.curve import Curve
from export.forms.dense import Dense
from export.forms.mlp import Mlp
from export.reading import Malformed

LAYER = struct.Struct("<HBB")
"""Outputs, shift, activation."""
CURVE = struct.Struct("<5I")
"""Places, q, mul, down, frac."""
ENTRY = struct.Struct("<I")
BIAS = struct.Struct("<q")
WEIGHT = struct.Struct("<i")
ACTIVATIONS = ("identity", "relu", "sigmoid", "tanh")
"""A layer's activation is an index here."""


def entries(form: Mlp) -> int:
    """Entries of the table of tanh; 0 without one."""
    return 0 if form.curve is None else len(form.curve.entries)


def network_body(form: Mlp) -> bytes:
    """The heads of all layers, the table of tanh, then each layer's biases and weights."""
    heads = b"".join(
        LAYER.pack(len(layer.weights), layer.shift, ACTIVATIONS.index(layer.activation))
        for layer in form.layers
    )
    return heads + _curve(form.curve) + b"".join(map(_sums, form.layers))


def read_network(
    body: bytes, layers: int, items: int, places: int, features: int
) -> dict[str, Any]:
    """The network's part of a document; what its numbers mean is for the form to check.

    Parameters
    ----------
    body : bytes
    layers, items, places : int
        From the head of the file: layers, entries of the table, fractional bits of the scores.
    features : int
        What the first layer gets.

    Raises
    ------
    Malformed
        When the counts don't fit the length, or there is no such activation.
    """
    start = layers * LAYER.size
    curve = CURVE.size + items * ENTRY.size if items else 0
    if len(body) < start + curve:
        raise Malformed("its counts don't fit its length")
    heads = list(LAYER.iter_unpack(body[:start]))
    inputs = [features, *(outputs for outputs, _, _ in heads)]
    sizes = [
        rows * (BIAS.size + columns * WEIGHT.size)
        for columns, (rows, _, _) in zip(inputs, heads, strict=False)
    ]
    if len(body) != start + curve + sum(sizes):
        raise Malformed("its counts don't fit its length")
    at, found = start + curve, []
    for columns, size, (rows, shift, activation) in zip(inputs, sizes, heads, strict=False):
        if activation >= len(ACTIVATIONS):
            raise Malformed(f"activation {activation} is unknown")
        split = at + rows * BIAS.size
        weights = [weight for (weight,) in WEIGHT.iter_unpack(body[split : at + size])]
        found.append(
            {
                "weights": [weights[i : i + columns] for i in range(0, len(weights), columns)],
                "biases": [bias for (bias,) in BIAS.iter_unpack(body[at:split])],
                "shift": shift,
                "activation": ACTIVATIONS[activation],
            }
        )
        at += size
    table = _read_curve(body[start : start + curve]) if items else None
    return {"layers": found, "curve": table, "places": places}


def _curve(curve: Curve | None) -> bytes:
    if curve is None:
        return b""
    head = CURVE.pack(curve.places, curve.q, curve.mul, curve.down, curve.frac)
    return head + b"".join(map(ENTRY.pack, curve.entries))


def _sums(layer: Dense) -> bytes:
    weights = (weight for row in layer.weights for weight in row)
    return b"".join((*map(BIAS.pack, layer.biases), *map(WEIGHT.pack, weights)))


def _read_curve(body: bytes) -> dict[str, Any]:
    names = ("places", "q", "mul", "down", "frac")
    found = dict(zip(names, CURVE.unpack_from(body), strict=True))
    return {**found, "entries": [entry for (entry,) in ENTRY.iter_unpack(body[CURVE.size :])]}
