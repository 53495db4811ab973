"""Partitions of the windows of a table, and how often they are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError
from models.sbd.partition import Bools, Ints, components, contradicted, subsets, together
from models.sbd.windows import Windows
from models.stats.intervals import by_connection

PAIR = ("subflow_a", "subflow_b")


@dataclass(frozen=True)
class Grid:
    """Rows of a table as one square of pairs for each window of a connection.

    Attributes
    ----------
    window : int64 array [N]
        Window of each row, W in all, in order of connection and time.
    place : int64 array [N, 2]
        The row's two subflows among those of its connection.
    connection : int64 array [W]
        Number of each window's connection, ascending.
    index : int64 array [W]
        The window's index within its connection.
    names : list of list of int
        Subflows of each connection that any row of it has.
    """

    window: Ints
    place: Ints
    connection: Ints
    index: Ints
    names: list[list[int]]

    def square(self, rows: Bools) -> Bools:
        """Values [N] of rows as [W, n, n], upper triangles; n is the most subflows."""
        n = max((len(names) for names in self.names), default=2)
        out = np.zeros((len(self.connection), n, n), np.bool_)
        out[self.window, self.place[:, 0], self.place[:, 1]] = rows
        return out

    def complete(self) -> Bools:
        """Whether all pairs of the connection's subflows have a row in a window, bool array [W]."""
        sizes = np.array([len(names) for names in self.names], np.int64)[self.connection]
        rows = np.bincount(self.window, minlength=len(self.connection))
        return np.asarray(rows == sizes * (sizes - 1) // 2)

    def last(self) -> Bools:
        """Whether a window is the last of its connection, bool array [W]."""
        return np.append(self.connection[1:] != self.connection[:-1], True)[: len(self.connection)]


def grid(table: Windows) -> Grid:
    """Arrange the rows of a table.

    Parameters
    ----------
    table : Windows
        N rows; without ``subflow_a`` and ``subflow_b`` each connection has subflows 1 and 2.

    Raises
    ------
    UserError
        When a pair has two rows in one window.
    """
    keys = [name for name in ("source", "connection") if name in table.frame.columns]
    frame = table.frame.select(*keys, "window")
    for name, number in zip(PAIR, (1, 2), strict=True):
        known = table.frame[name] if name in table.frame.columns else pl.lit(number)
        frame = frame.with_columns(known.cast(pl.Int64).alias(name))
    if (double := frame.is_duplicated()).any():
        row = frame.row(int(double.arg_max() or 0), named=True)
        raise UserError(
            f"connection {row['connection']!r} has two rows for one pair of window "
            f"{row['window']}: make the table again with `cczoo features sbd`"
        )
    ranked = frame.select(
        pl.struct(keys).rank("dense").cast(pl.Int64).alias("connection") - 1,
        pl.struct(*keys, "window").rank("dense").cast(pl.Int64).alias("number") - 1,
        "window",
        *PAIR,
    )
    connection = ranked["connection"].to_numpy()
    window = ranked["number"].to_numpy()
    pairs = ranked.select(PAIR).to_numpy()
    names: list[list[int]] = []
    place = np.empty_like(pairs)
    order = np.argsort(connection, kind="stable")
    edges = np.flatnonzero(np.diff(connection[order], prepend=-1))
    for own in np.split(order, edges[1:]) if len(order) else []:
        subflows = np.unique(pairs[own])
        names.append(subflows.tolist())
        place[own] = np.searchsorted(subflows, pairs[own])
    _, first = np.unique(window, return_index=True)
    index = ranked["window"].to_numpy()[first]
    return Grid(window, place, connection[first], index.astype(np.int64), names)


def score(
    arranged: Grid, shared: Bools, y: Ints, confidence: float = 0.95, seed: int = 0
) -> dict[str, Any]:
    """How right verdicts on pairs, and the partitions made of them, are.

    Parameters
    ----------
    arranged : Grid
        The arrangement of N rows in W windows.
    shared : bool array [N]
        Verdict of each row.
    y : int64 array [N]
        1 for SB, 0 for NSB, -1 unknown.
    confidence, seed
        Settings of the intervals, which resample whole connections.

    Returns
    -------
    dict
        ``pair_accuracy``, ``sb_accuracy``, ``nsb_accuracy`` (of labelled rows),
        ``exact_partition`` (of windows that have all their connection's pairs, all labelled) and
        ``exact_connection`` (of the last such window of each), each a mean with its interval;
        ``pairs``, ``windows``, ``connections`` that these are of.
    """
    known = y >= 0
    of = arranged.connection[arranged.window]
    hit = shared == (y == 1)
    labelled = ~arranged.square(~known).any(axis=(1, 2))
    whole = arranged.complete() & labelled
    truth = together(components(arranged.square(y == 1)))
    said = together(components(arranged.square(shared)))
    exact = (truth == said).all(axis=(1, 2))
    final = whole & ~np.isin(np.arange(len(whole)), _superseded(arranged.connection, whole))

    def interval(hits: NDArray[np.bool_], group: Ints) -> dict[str, Any]:
        return {**by_connection(hits, group, confidence, seed=seed)}

    return {
        "pair_accuracy": interval(hit[known], of[known]),
        "sb_accuracy": interval(hit[y == 1], of[y == 1]),
        "nsb_accuracy": interval(hit[y == 0], of[y == 0]),
        "exact_partition": interval(exact[whole], arranged.connection[whole]),
        "exact_connection": interval(exact[final], arranged.connection[final]),
        "pairs": int(known.sum()),
        "windows": int(whole.sum()),
        "connections": int(final.sum()),
    }


def _superseded(connection: Ints, whole: Bools) -> Ints:
    """Whole windows after which the same connection has another one."""
    at = np.flatnonzero(whole)
    return np.asarray(at[:-1][connection[at[:-1]] == connection[at[1:]]])


def contradictions(arranged: Grid, shared: Bools) -> dict[str, int]:
    """Windows with three pairs and more, and in how many verdicts aren't transitive."""
    judged = arranged.square(np.ones(len(shared), np.bool_))
    many = judged.sum(axis=(1, 2)) > 1
    wrong = contradicted(arranged.square(shared), judged)
    return {"windows_of_three": int(many.sum()), "not_transitive": int((wrong & many).sum())}


def partitions(arranged: Grid, shared: Bools) -> list[list[list[int]]]:
    """Subsets of each window as subflow numbers; a subflow without a row is by itself."""
    groups = components(arranged.square(shared))
    return [
        subsets(group[: len(arranged.names[c])], arranged.names[c])
        for c, group in zip(arranged.connection, groups, strict=True)
    ]
