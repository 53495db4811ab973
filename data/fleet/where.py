"""Filters of rows, as in ``day >= 2026-11-01 and isp = 'x'``: SQL's conditions, read by polars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from data.errors import UserError, unknown_name
from data.fleet.table import File

if TYPE_CHECKING:
    import polars as pl

_TOKENS = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\")|(\b\d{4}-\d{2}-\d{2}\b)|([()])|(\band\b)", re.I)


class Where:
    """A condition on the columns of connections, or none.

    Parameters
    ----------
    text : str, optional
        Without it every row is meant.

    Raises
    ------
    UserError
        When it can't be read.
    """

    def __init__(self, text: str | None = None) -> None:
        self.text = text or ""
        quoted, parts = _parsed(self.text)
        self._whole = _expression(quoted, self.text) if self.text else None
        self._parts = [] if self._whole is None else [_expression(p, self.text) for p in parts]

    @property
    def columns(self) -> list[str]:
        """Names of columns that the condition is about."""
        return [] if self._whole is None else list(dict.fromkeys(self._whole.meta.root_names()))

    def check(self, known: Iterable[str]) -> None:
        """Refuse a column that there isn't, with the nearest one that there is."""
        known = sorted(known)
        for name in self.columns:
            if name not in known:
                raise unknown_name("column in --where", name, known)

    def files(self, files: Sequence[File]) -> list[File]:
        """Files that may have rows for which the condition holds, by their partitions alone."""
        import polars as pl

        if not files or self._whole is None:
            return list(files)
        places = pl.DataFrame(
            [file.values for file in files], schema=dict.fromkeys(files[0].values, pl.String)
        )
        kept = pl.Series([True] * len(files))
        for part in self._parts:
            if set(part.meta.root_names()) <= set(places.columns):
                kept &= self._mask(places, part)
        return [file for file, keep in zip(files, kept, strict=True) if keep]

    def mask(self, rows: pl.DataFrame) -> pl.Series:
        """Whether the condition holds, for each row."""
        import polars as pl

        if self._whole is None:
            return pl.Series([True] * len(rows), dtype=pl.Boolean)
        return self._mask(rows, self._whole)

    def _mask(self, rows: pl.DataFrame, expression: pl.Expr) -> pl.Series:
        import polars as pl

        try:
            found = rows.select(expression.fill_null(False).alias("kept"))["kept"]
        except pl.exceptions.PolarsError as error:
            line = str(error).splitlines()[0]
            raise UserError(
                f"--where {self.text!r}: {line}: attributes are texts, as in isp = 'x'"
            ) from None
        if found.dtype != pl.Boolean:
            raise UserError(f"--where {self.text!r}: not a condition: write one as in isp = 'x'")
        return found if len(found) == len(rows) else found.extend_constant(found[0], len(rows) - 1)


def _parsed(text: str) -> tuple[str, list[str]]:
    """The text with dates in quotes, and the parts that an ``and`` outside of brackets joins."""
    whole, parts, depth = "", [""], 0
    at = 0
    for found in _TOKENS.finditer(text):
        _, date, bracket, joint = found.groups()
        piece = text[at : found.start()]
        token = f"'{date}'" if date else found.group()
        depth += {"(": 1, ")": -1}.get(bracket, 0)
        whole += piece + token
        parts[-1] += piece
        if joint and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
        at = found.end()
    whole += text[at:]
    parts[-1] += text[at:]
    # Elsewhere `and` belongs to `between`, or its parts can be joined by `or`.
    simple = not re.search(r"\b(between|or|case)\b", re.sub(r"'(?:[^']|'')*'", "''", text), re.I)
    return whole, parts if simple else [whole]


def _expression(sql: str, text: str) -> Any:
    import polars as pl

    try:
        found = pl.sql_expr(sql)
    except (pl.exceptions.PolarsError, RuntimeError, ValueError) as error:
        line = str(error).splitlines()[0]
        # A label may be called `group`, as a clause of SQL is.
        hint = "; such a word is a column's name in double quotes" if "clause" in line else ""
        raise UserError(
            f"--where {text!r}: {line}: write a condition as in \"day >= 2026-11-01 and isp = 'x'\""
            + hint
        ) from None
    return found
