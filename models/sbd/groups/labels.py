"""Groups of connections by attributes of their users (smartsbd.txt §2: subnet, ISP, city)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from data.errors import UserError, unknown_name
from features.sbd import FAMILIES, features_of

NO_ATTRIBUTE = ("connection", "window", "label", "start_us", "end_us")
"""Key columns, which are no attributes to group by."""


def attribute_columns(columns: Iterable[str]) -> list[str]:
    """Columns of a features table that are neither keys nor features."""
    known = {*NO_ATTRIBUTE, *(f.name for family in FAMILIES for f in features_of(family))}
    return [name for name in columns if name not in known]


def check_columns(known: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse columns that can't group.

    Parameters
    ----------
    known : iterable of str
        All columns of the features table.
    columns : sequence of str
        Those asked for.

    Raises
    ------
    UserError
        For a column that isn't an attribute, with the nearest that is, or given twice.
    """
    there = attribute_columns(known)
    for name in columns:
        if name not in there:
            raise unknown_name("attribute column to group by", name, there)
    if len(set(columns)) < len(columns) or not columns:
        raise UserError(f"--groups {','.join(columns)}: give each column once, as in site,cc")


def label(columns: Sequence[str]) -> pl.Expr:
    """Group of each row, ``site=shanghai,cc=lia``; null if an attribute is missing or empty."""
    parts = []
    for name in columns:
        value = pl.col(name).cast(pl.String)
        parts.append(pl.format(f"{name}={{}}", pl.when(value != "").then(value)))
    return pl.concat_str(parts, separator=",")


def check_constant(pairs: pl.DataFrame) -> None:
    """Refuse attributes that change within a connection.

    Parameters
    ----------
    pairs : polars.DataFrame
        Columns connection and group, any number of rows of each connection.

    Raises
    ------
    UserError
        With a connection that is in two groups.
    """
    connection, group = pairs.columns
    pairs = pairs.unique()
    twice = pairs.filter(pairs[connection].is_duplicated()).sort(connection, group)
    if len(twice):
        name, first, second = twice[connection][0], *twice[group][:2]
        raise UserError(
            f"connection {name!r} is in {first!r} and in {second!r}: group by attributes that "
            "don't change within a connection"
        )
