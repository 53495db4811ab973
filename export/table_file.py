"""Writes and reads the table file (``.cct``): a form that a kernel module can check and walk.

docs/table-format.md describes the format. The C readers are ``export/runtime/cczoo_table.c``,
for trees with several scores ``cczoo_scores.c``, and for networks ``cczoo_network.c``; they refuse
the same files as this one, but for what it alone can know: the model's hash.
"""

from __future__ import annotations

import struct
from typing import Any

from data.errors import UserError
from export.document import model_hash
from export.forms import form_module
from export.forms.forest import Forest
from export.forms.linear import Linear
from export.forms.mlp import Mlp
from export.forms.nodes import MAX_NODES, Nodes
from export.forms.tree import Tree
from export.forms.trees import Trees
from export.ir import MAX_FEATURES, Form
from export.reading import Malformed
from export.table_network import entries, network_body, read_network
from features.spec import Feature

MAGIC = b"CCZT"
VERSION = 1
KINDS = {"tree": 1, "forest": 2, "linear": 3, "trees": 4, "mlp": 5}
"""Kind of a form -> its byte in a file."""
MOST_LABELS = 255

HEAD = struct.Struct("<4sHBBIIq32s32sIIq")
"""magic, version, kind, classes, size, features, decision threshold (docs: cut), schema, model,
parts, items, bias."""
ROOT = struct.Struct("<I")
INTO = struct.Struct("<I")
SCORE = struct.Struct("<i")
NODE = struct.Struct("<iI")
WEIGHT = struct.Struct("<i")
CHECKSUM = struct.Struct("<I")
RIGHT_BITS = 20
"""A node's link: the right child below, the feature above; 0 in a leaf."""
if MAX_NODES > 1 << RIGHT_BITS or MAX_FEATURES > 1 << (32 - RIGHT_BITS):
    raise ValueError("a link can't hold every node and feature that a form may have")


def write(form: Form, schema_hash: str) -> bytes:
    """Write a form as a table file.

    Parameters
    ----------
    form : Form
    schema_hash : str
        Of its features and their settings, 64 hexadecimal digits.

    Raises
    ------
    UserError
        When the form is of a kind that the file can't carry, or has too many labels.
    """
    if form.kind not in KINDS:
        raise UserError(f"a table file can't carry a {form.kind}: choose another target")
    if why := refusal(form):
        raise UserError(f"{why}: choose another target")
    decision_threshold = form.decision_threshold
    if isinstance(form, Linear):
        parts, items, bias = form.shift, len(form.weights), form.bias
        body = b"".join(map(WEIGHT.pack, form.weights))
    elif isinstance(form, Mlp):
        parts, items, bias = len(form.layers), entries(form), form.places
        body = network_body(form)
    else:
        trees = _trees(form)
        parts, items, bias = len(trees), sum(map(len, trees)), 0
        roots, nodes = _tree_body(trees)
        body = roots + nodes
        if isinstance(form, Trees):
            decision_threshold, bias = len(form.rows), form.places
            scores = b"".join(SCORE.pack(score) for row in form.rows for score in row)
            body = roots + b"".join(map(INTO.pack, form.into)) + nodes + scores
    head = HEAD.pack(
        MAGIC,
        VERSION,
        KINDS[form.kind],
        len(form.labels),
        HEAD.size + len(body) + CHECKSUM.size,
        len(form.features),
        decision_threshold,
        bytes.fromhex(schema_hash),
        bytes.fromhex(model_hash(form)),
        parts,
        items,
        bias,
    )
    return head + body + CHECKSUM.pack(crc32c(head + body))


def refusal(form: Form) -> str:
    """Why a form of a known kind doesn't fit a file; empty if it does."""
    if len(form.labels) <= MOST_LABELS:
        return ""
    return f"{len(form.labels)} labels don't fit a table file, {MOST_LABELS} do"


def read(
    content: bytes,
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    schema_hash: str,
    where: str,
) -> Form:
    """Read the form that a table file was made from.

    Parameters
    ----------
    content : bytes
    features : tuple of Feature
        What the file must have been made for; it holds their hash alone.
    labels : tuple of str
    schema_hash : str
        That hash.
    where : str
        Its name, for the message.

    Returns
    -------
    Form

    Raises
    ------
    UserError
        When it isn't such a file, whole and of these features.
    """
    try:
        return _form(content, features, labels, schema_hash)
    except Malformed as error:
        raise UserError(f"{where}: {error}: not a table file of this model, export it") from None


def crc32c(content: bytes) -> int:
    """CRC-32C (Castagnoli; polynomial 0x1EDC6F41, reflected, all ones before and after)."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC = tuple(map(_crc_of, range(256)))


def _trees(form: Form) -> tuple[Nodes, ...]:
    if not isinstance(form, Tree | Forest | Trees):
        raise TypeError(f"{form.kind} has no trees")
    return form.trees


def _tree_body(trees: tuple[Nodes, ...]) -> tuple[bytes, bytes]:
    """Roots and nodes."""
    roots, nodes = [], []
    start = 0
    for tree in trees:
        roots.append(ROOT.pack(start))
        for feature, value, right in zip(tree.feature, tree.value, tree.right, strict=True):
            link = 0 if feature < 0 else feature << RIGHT_BITS | start + right
            nodes.append(NODE.pack(value, link))
        start += len(tree)
    return b"".join(roots), b"".join(nodes)


def _form(
    content: bytes, features: tuple[Feature, ...], labels: tuple[str, ...], schema_hash: str
) -> Form:
    if len(content) < HEAD.size + CHECKSUM.size:
        raise Malformed("shorter than a table's head")
    head = HEAD.unpack_from(content)
    (
        magic,
        version,
        kind,
        classes,
        size,
        columns,
        decision_threshold,
        schema,
        model,
        parts,
        items,
        bias,
    ) = head
    if magic != MAGIC or version != VERSION:
        raise Malformed(f"{MAGIC.decode()} version {VERSION} was expected")
    if size != len(content):
        raise Malformed(f"{len(content)} bytes where its head says {size}")
    if CHECKSUM.pack(crc32c(content[: -CHECKSUM.size])) != content[-CHECKSUM.size :]:
        raise Malformed("its checksum is wrong")
    kinds = {byte: name for name, byte in KINDS.items()}
    if kind not in kinds:
        raise Malformed(f"kind {kind} is unknown")
    if classes != len(labels) or columns != len(features):
        raise Malformed(f"made for {columns} features and {classes} classes")
    if schema != bytes.fromhex(schema_hash):
        raise Malformed("made for other features (schema hash)")
    body = content[HEAD.size : -CHECKSUM.size]
    if kinds[kind] == "linear":
        document = _linear(body, parts, items, bias)
    elif kinds[kind] == "mlp":
        document = read_network(body, parts, items, bias, columns)
    elif kinds[kind] == "trees":
        document, decision_threshold = (
            _several(body, parts, items, (decision_threshold, classes), bias),
            0,
        )
    else:
        document = _nodes(body, parts, items, bias)
    if kinds[kind] == "tree":
        if parts != 1:
            raise Malformed("a tree has one root")
        document = {"nodes": document["trees"][0]}
    form = form_module(kinds[kind]).parse(document, features, labels, decision_threshold)
    if bytes.fromhex(model_hash(form)) != model:
        raise Malformed("its content isn't the model that its head names (model hash)")
    return form


def _linear(body: bytes, shift: int, items: int, bias: int) -> dict[str, Any]:
    if len(body) != items * WEIGHT.size:
        raise Malformed("its counts don't fit its length")
    return {"weights": [w for (w,) in WEIGHT.iter_unpack(body)], "bias": bias, "shift": shift}


def _several(
    body: bytes, parts: int, items: int, table: tuple[int, int], places: int
) -> dict[str, Any]:
    rows, labels = table
    split = parts * ROOT.size
    into = 0 if rows else parts * INTO.size
    end = split + into + items * NODE.size
    if rows < 0 or len(body) != end + rows * labels * SCORE.size:
        raise Malformed("its counts don't fit its length")
    scores = [score for (score,) in SCORE.iter_unpack(body[end:])]
    return {
        **_nodes(body[:split] + body[split + into : end], parts, items, 0),
        "into": [label for (label,) in INTO.iter_unpack(body[split : split + into])],
        "rows": [scores[i : i + labels] for i in range(0, len(scores), labels)],
        "places": places,
    }


def _nodes(body: bytes, parts: int, items: int, bias: int) -> dict[str, Any]:
    if len(body) != parts * ROOT.size + items * NODE.size or not parts or not items:
        raise Malformed("its counts don't fit its length")
    if bias:
        raise Malformed("a tree's bias isn't 0")
    split = parts * ROOT.size
    roots = [root for (root,) in ROOT.iter_unpack(body[:split])]
    nodes = list(NODE.iter_unpack(body[split:]))
    ends = [*roots[1:], items]
    if roots[0] or any(end <= start for start, end in zip(roots, ends, strict=True)):
        raise Malformed("its roots aren't where its trees start")
    mask = (1 << RIGHT_BITS) - 1
    return {
        "trees": [
            [
                [link >> RIGHT_BITS, value, (link & mask) - start] if link else [value]
                for value, link in nodes[start:end]
            ]
            for start, end in zip(roots, ends, strict=True)
        ]
    }
