"""The features table as models see it: arrays, labels, connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data.errors import UserError

KEY = ("source", "connection", "window", "label", "start_us", "end_us", "rtt_kind",
       "subflow_a", "subflow_b")  # fmt: skip
"""Columns that a row has whatever the family of features; attributes are all further strings."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Rows of the features table that can be used, in order of connection and window.

    Attributes
    ----------
    frame : polars.DataFrame
        All columns, N rows.
    group : ndarray of int64, shape (N,)
        Number of the connection, ascending; of each of its pairs where it has more than two
        subflows.
    y : ndarray of int64, shape (N,)
        1 for SB, 0 for NSB, -1 where the label is missing.
    """

    frame: pl.DataFrame
    group: Ints
    y: Ints

    def __len__(self) -> int:
        return self.frame.height

    def matrix(self, names: Sequence[str]) -> Floats:
        """Feature values, shape (N, len(names)).

        Raises
        ------
        UserError
            When the table lacks a column.
        """
        missing = [name for name in names if name not in self.frame.columns]
        if missing:
            raise UserError(
                f"the features table has no column {missing[0]!r} ({len(missing)} missing): "
                "make it with this version's `cczoo features sbd`"
            )
        columns = [self.frame[name].cast(pl.Float64).to_numpy() for name in names]
        return np.stack(columns, axis=1) if columns else np.empty((len(self), 0))

    def take(self, mask: NDArray[np.bool_]) -> Windows:
        """The rows where ``mask`` (N,) holds."""
        return Windows(self.frame.filter(pl.Series(mask)), self.group[mask], self.y[mask])

    def finite(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Rows (N,) whose features are all finite numbers."""
        return np.asarray(np.isfinite(self.matrix(names)).all(axis=1), dtype=np.bool_)

    def column(self, name: str) -> NDArray[np.str_]:
        """An attribute as strings (N,), empty where it is absent or null."""
        if name not in self.frame.columns:
            return np.full(len(self), "")
        return self.frame[name].cast(pl.String).fill_null("").to_numpy().astype(np.str_)


def read(path: Path) -> pl.DataFrame:
    """Read a features file.

    Raises
    ------
    UserError
        When it isn't there, isn't Parquet or lacks the key columns.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such features file: make it with `cczoo features sbd`")
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: not a readable Parquet file: {reason}") from None
    missing = [name for name in ("connection", "window") if name not in frame.columns]
    if missing:
        raise UserError(
            f"{path}: no column {missing[0]!r}: this isn't a table of `cczoo features sbd`"
        )
    return frame


def windows(frame: pl.DataFrame) -> Windows:
    """Order the rows and number the connections.

    Raises
    ------
    UserError
        When a label is neither SB nor NSB.
    """
    known = ("source", "connection", "subflow_a", "subflow_b")
    keys = [name for name in known if name in frame.columns]
    frame = frame.sort([*keys, "window"], maintain_order=True)
    group = frame.select(pl.struct(keys).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    y = np.full(frame.height, -1, dtype=np.int64)
    if "label" in frame.columns:
        text = frame["label"].cast(pl.String).fill_null("").to_numpy().astype(np.str_)
        wrong = ~np.isin(text, ("SB", "NSB", ""))
        if wrong.any():
            raise UserError(
                f"label {str(text[wrong][0])!r} of connection "
                f"{frame['connection'][int(np.flatnonzero(wrong)[0])]!r}: write SB or NSB"
            )
        y[text == "SB"] = 1
        y[text == "NSB"] = 0
    return Windows(frame, group.astype(np.int64), y)


def attributes(frame: pl.DataFrame, features: Sequence[str], limit: int = 50) -> list[str]:
    """Columns by which results are broken down: non-feature, at most ``limit`` values."""
    skip = {*KEY, *features} - {"rtt_kind"}
    found = []
    for name in frame.columns:
        text = frame.schema[name] in (pl.String, pl.Categorical, pl.Boolean)
        if name not in skip and (text or isinstance(frame.schema[name], pl.Enum)):
            distinct = frame[name].n_unique()
            if distinct <= limit and frame[name].null_count() < frame.height:
                found.append(name)
    return found
