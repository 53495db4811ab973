"""Rows of a features table as commands take them: none twice, and what is left out is said."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from models.sbd.usable import Dropped, check_unique, usable
from models.sbd.windows import Windows, read, windows


def load_table(path: Path) -> Windows:
    """All rows of a features file.

    Raises
    ------
    UserError
        When it isn't a table of features, or windows are there twice.
    """
    table = windows(read(path))
    check_unique(table, str(path))
    return table


def training_table(path: Path, names: Sequence[str]) -> tuple[Windows, Dropped]:
    """Rows that a training may use: labelled, and finite in the features ``names``.

    Raises
    ------
    UserError
        As :func:`load_table`.
    """
    table = load_table(path)
    mask, dropped = usable(table, names, labelled=True)
    tell(dropped, str(path))
    return table.take(mask), dropped


def tell(dropped: Dropped, where: str) -> None:
    """Say on stderr what was left out, where anything was."""
    if line := dropped.line(where):
        print(line, file=sys.stderr)
