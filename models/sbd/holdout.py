"""Connections that no kept model learns from, so that promotion can compare any two of them."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from models.sbd.table import Windows

RULE = "first 64 bits of SHA-256 of the connection's name, below the share of 2^64"


def held_out(table: Windows, share: float) -> NDArray[np.bool_]:
    """Rows whose connection is held out, by its name alone.

    The choice doesn't depend on the table: a connection that is held out once is held out of every
    later table too.

    Parameters
    ----------
    table : Windows
        N rows.
    share : float
        Of connections, 0 to 1.

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    connection = table.column("connection")
    names, row = np.unique(connection, return_inverse=True)
    chosen = np.array([_place(str(name)) < share for name in names], dtype=np.bool_)
    return chosen[row]


def _place(name: str) -> float:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64
