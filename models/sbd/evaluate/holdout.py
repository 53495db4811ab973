"""One rule for every training says which rows models learn from, and which they never do.

The fixed test set is Table 6 of the paper and a share of all other connections, chosen by their
names, so that promotion can compare any two kept models on them.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.sbd.params import Protocol
from models.sbd.windows import Windows

RULE = "first 64 bits of SHA-256 of the connection's name, below the share of 2^64"


def held_out(table: Windows, share: float) -> NDArray[np.bool_]:
    """Rows whose connection is held out, by its name alone, bool array [N].

    The choice doesn't depend on the table: a connection that is held out once is held out of every
    later table too.

    Parameters
    ----------
    table : Windows
        N rows.
    share : float
        Share of connections, 0 to 1.

    Returns
    -------
    bool array [N]
    """
    connection = table.column("connection")
    names, row = np.unique(connection, return_inverse=True)
    chosen = np.array([_place(str(name)) < share for name in names], dtype=np.bool_)
    return chosen[row]


def _place(name: str) -> float:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def test_rows(table: Windows, protocol: Protocol) -> NDArray[np.bool_]:
    """Rows of the fixed test set, labelled or not: bool array [N].

    Table 6 (the data set that ``unseen`` names) and the connections that are held out.
    """
    return unseen_rows(table, protocol) | held_out(table, protocol.holdout)


def unseen_rows(table: Windows, protocol: Protocol) -> NDArray[np.bool_]:
    """Rows of the data set that nothing learns from, bool array [N]."""
    return np.asarray(table.column("dataset") == protocol.unseen, dtype=np.bool_)


def training_rows(table: Windows, protocol: Protocol) -> NDArray[np.bool_]:
    """Rows that a kept model learns from, bool array [N]: the one rule for all of them.

    Every labelled row but those of :func:`test_rows`, whatever its data set is called.
    """
    return np.asarray((table.y >= 0) & ~test_rows(table, protocol), dtype=np.bool_)


def held_out_split(table: Windows, protocol: Protocol) -> tuple[Windows, Windows]:
    """The held-out split: rows that kept models learn from, and labelled rows that they don't.

    Both are of the same data sets.

    Parameters
    ----------
    table : Windows
    protocol : Protocol
        ``unseen`` and ``holdout`` say which.
    """
    left_out = (table.y >= 0) & test_rows(table, protocol) & ~unseen_rows(table, protocol)
    return table.take(training_rows(table, protocol)), table.take(left_out)


def check_trainable(table: Windows, protocol: Protocol, where: str) -> None:
    """Refuse a table that has nothing to learn from.

    Parameters
    ----------
    table : Windows
        Rows that can be used.
    protocol : Protocol
    where : str
        The table's name, for the message.

    Raises
    ------
    UserError
        When the training rows are not of both classes.
    """
    rows = training_rows(table, protocol)
    if np.unique(table.y[rows]).size == 2:
        return
    labelled = int((table.y >= 0).sum())
    test = f"the fixed test set (data set {protocol.unseen!r} and connections held out by name)"
    if labelled and not rows.any():
        raise UserError(
            f"{where}: all {labelled} labelled rows are of {test}: nothing to learn from: collect "
            "more, or name its data set otherwise"
        )
    raise UserError(
        f"{where}: both SB and NSB windows are needed to train, of {len(table)} usable rows "
        f"{int(rows.sum())} are labelled and outside {test}"
    )
