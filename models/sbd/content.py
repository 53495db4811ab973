"""What a training table says, as one hash that doesn't hang on how or where it was written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from features.grid import integers
from features.spec import Feature
from models.sbd.windows import Windows

BLOCK = 4096
"""Rows at a time: a series has 900 columns."""


def content_hash(table: Windows, features: Sequence[Feature]) -> str:
    """SHA-256 over labels, connections and fixed-point features.

    Parameters
    ----------
    table : Windows
        N rows, in the order of `models.sbd.windows.windows`: source, connection, subflows, window.
    features : sequence of Feature
        Columns, in this order.

    Returns
    -------
    str
        Of a line ``source, connection, window, label`` per row (with tabs), then of the rows'
        features as little-endian int64 (`features.grid.integers`). Neither the Parquet file's
        bytes nor the last digits of a float enter it.
    """
    digest = hashlib.sha256()
    keys = [table.column(name) for name in ("source", "connection", "window")]
    for row in zip(*keys, table.y, strict=True):
        digest.update("\t".join(map(str, row)).encode() + b"\n")
    names = [feature.name for feature in features]
    digest.update("\t".join(names).encode() + b"\n")
    for begin in range(0, len(table), BLOCK):
        part = Windows(
            table.frame.slice(begin, BLOCK),
            table.group[begin : begin + BLOCK],
            table.y[begin : begin + BLOCK],
        )
        block = integers(part.matrix(names), features)
        digest.update(np.ascontiguousarray(block, dtype="<i8").tobytes())
    return digest.hexdigest()
