"""Writes the node table, which ``<id>.nodes.bin`` and a program's map hold.

The file is little-endian: the header (:data:`HEADER`), ``trees`` roots (uint32, indices of nodes)
and ``nodes`` nodes of 8 bytes in preorder, one tree after another. A node is ``value`` (int32) and
``turn`` (uint32): an inner node compares ``x[turn % 1024] <= value``; if that holds the next
node follows, else the one ``turn / 1024`` nodes on. ``turn`` is 0 in a leaf, whose score is
``value``. The map holds the decision threshold, ``trees`` and ``nodes``, then roots and nodes, each
padded with zeros to the capacity that the program was compiled for.

Trees with several scores (:mod:`export.forms.trees`) have the header :data:`SEVERAL`, which holds
no decision threshold. Before the roots come ``rows`` rows of ``labels`` int32: a leaf whose value
is ``i`` adds row ``i`` to the labels' scores. A file without rows has there, per tree, the label
whose score the tree's leaves add to (uint32).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np

from data.errors import UserError
from export.forms.forest import Forest
from export.forms.nodes import MAX_DEPTH, Nodes
from export.forms.tree import Tree
from export.forms.trees import Trees
from export.ir import MAX_FEATURES

MAGIC = b"cczooNOD"
VERSION = 1
HEADER = struct.Struct("<8sIIII32sq")
"""Magic, version, features, trees, nodes, schema hash (SHA-256), decision threshold."""
SEVERAL_MAGIC = b"cczooTRS"
SEVERAL = struct.Struct("<8sIIIIII32s")
"""Magic, version, features, trees, nodes, labels, rows (0: none), schema hash."""
ROW = np.dtype([("value", "<i4"), ("turn", "<u4")])
FURTHEST = (1 << 32) // MAX_FEATURES
"""Nodes that a turn can pass over."""
INT64_MIN = -(2**63)
LEAST_NODES, LEAST_TREES, LEAST_ROWS = 1024, 256, 64
"""Capacity of a small model's map, so that a somewhat larger one can replace it."""


@dataclass(frozen=True)
class Capacity:
    """What a program's map has room for, powers of two, and the deepest walk.

    ``rows`` is 0 if leaves have none.
    """

    trees: int
    nodes: int
    depth: int = MAX_DEPTH
    rows: int = 0


def capacity(form: Tree | Forest | Trees) -> Capacity:
    """Room for a model, its nodes, rows and a forest's trees rounded up to powers of two."""
    nodes = max(LEAST_NODES, _power_of_two(sum(map(len, form.trees))))
    rows = 0
    if isinstance(form, Trees) and form.rows:
        rows = max(LEAST_ROWS, _power_of_two(len(form.rows)))
    if len(form.trees) == 1 and not isinstance(form, Forest):
        return Capacity(1, nodes, rows=rows)
    return Capacity(max(LEAST_TREES, _power_of_two(len(form.trees))), nodes, rows=rows)


def nodes_file(form: Tree | Forest | Trees, schema_hash: str) -> bytes:
    """The table as a file.

    Parameters
    ----------
    form : Tree, Forest or Trees
    schema_hash : str
        Schema hash of its features, 64 hexadecimal digits.

    Returns
    -------
    bytes

    Raises
    ------
    UserError
        When a left subtree is too large for a turn.
    """
    rows = [_rows(nodes) for nodes in form.trees]
    lengths = [len(r) for r in rows]
    roots = np.cumsum([0, *lengths[:-1]]).astype("<u4")
    counts = VERSION, len(form.features), len(rows), sum(lengths)
    schema = bytes.fromhex(schema_hash)
    if isinstance(form, Trees):
        head = SEVERAL.pack(SEVERAL_MAGIC, *counts, form.outputs, len(form.rows), schema)
        head += form.table.astype("<i4").tobytes() + np.array(form.into, dtype="<u4").tobytes()
    else:
        head = HEADER.pack(MAGIC, *counts, schema, form.decision_threshold)
    return head + roots.tobytes() + np.concatenate(rows).tobytes()


def _rows(nodes: Nodes) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    feature, value, right = nodes.arrays
    skip = right - np.arange(len(nodes))
    if skip.max() >= FURTHEST:
        raise UserError(
            f"a left subtree has {skip.max()} nodes, {FURTHEST - 1} fit the BPF table: "
            "train a smaller tree"
        )
    rows = np.zeros(len(nodes), dtype=ROW)
    rows["value"] = value
    rows["turn"] = np.where(feature < 0, 0, skip * MAX_FEATURES + feature)
    return rows


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def mirrored(form: Tree | Forest | Trees) -> Tree | Forest | Trees:
    """A model of the same shape with other leaves and threshold, to replace this one in a test.

    A leaf ``v`` becomes ``~v``, which fits wherever ``v`` did, and so the sum over ``n`` trees
    becomes ``-sum - n``. If leaves have rows, it is these whose values turn.
    """
    if isinstance(form, Trees) and form.rows:
        return replace(form, rows=tuple(tuple(~v for v in row) for row in form.rows))
    trees = tuple(
        Nodes(
            nodes.feature,
            tuple(
                ~v if feature < 0 else v
                for feature, v in zip(nodes.feature, nodes.value, strict=True)
            ),
            nodes.right,
        )
        for nodes in form.trees
    )
    if isinstance(form, Trees):
        return replace(form, trees=trees)
    decision_threshold = max(INT64_MIN, -form.decision_threshold - len(trees))
    if isinstance(form, Tree):
        return replace(form, nodes=trees[0], decision_threshold=decision_threshold)
    return replace(form, trees=trees, decision_threshold=decision_threshold)
