"""Gives thresholds, leaf values and support vectors fewer significant bits."""

from __future__ import annotations

import numpy as np

from data.errors import UserError
from export.forms.forest import Forest
from export.forms.nodes import Nodes
from export.forms.rbf import Rbf
from export.forms.tree import Tree
from export.ir import Ints
from export.passes.collapse import with_trees
from export.passes.coordinates import coarser

KINDS = frozenset({"tree", "forest", "rbf"})


def smaller(form: Tree | Forest | Rbf, bits: int, x: Ints) -> Tree | Forest | Rbf:
    """Thresholds and leaf values, or support vectors, that fit ``bits`` bits with their sign.

    A threshold becomes ``((t + 1) << s) - 1`` with ``t`` of ``bits`` bits, so ``x <= threshold``
    is ``x >> s <= t``; ``s`` is the feature's, from its largest threshold. A leaf value becomes a
    multiple of a power of two that all leaves share. Only support vectors need ``x``
    (:mod:`export.passes.coordinates`).

    Raises
    ------
    UserError
        When ``bits`` is no width of a signed integer.
    """
    if not 2 <= bits <= 32:
        raise UserError(f"--set bits={bits}: 2 to 32 expected")
    if isinstance(form, Rbf):
        return coarser(form, bits, x)
    shifts = feature_shifts(form, bits)
    leaf = max(_magnitude(v) for n in form.trees for v in n.arrays[1][n.arrays[0] < 0].tolist())
    step = _shift(leaf, bits)
    return with_trees(form, [_coarse(nodes, shifts, step, bits) for nodes in form.trees])


def feature_shifts(form: Tree | Forest, bits: int) -> list[int]:
    """Low bits of each feature that its thresholds don't use."""
    largest = [0] * len(form.features)
    for nodes in form.trees:
        for column, v in zip(nodes.feature, nodes.value, strict=True):
            if column >= 0:
                largest[column] = max(largest[column], _magnitude(v))
    return [_shift(value, bits) for value in largest]


def _magnitude(value: int) -> int:
    """What a signed integer needs bits for beside the sign."""
    return max(value, -1 - value)


def _shift(largest: int, bits: int) -> int:
    return max(0, largest.bit_length() - (bits - 1))


def _coarse(nodes: Nodes, shifts: list[int], step: int, bits: int) -> Nodes:
    half, most = (1 << step) >> 1, (1 << (bits - 1)) - 1
    value = []
    for column, v in zip(nodes.feature, nodes.value, strict=True):
        if column < 0:
            value.append(int(np.clip((v + half) >> step, -most - 1, most)) << step)
        else:
            s = shifts[column]
            turn = ((v + 1 + ((1 << s) >> 1)) >> s) - 1
            value.append(((int(np.clip(turn, -most - 1, most)) + 1) << s) - 1)
    return Nodes(nodes.feature, tuple(value), nodes.right)
