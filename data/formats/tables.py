"""Readers of tables with a header line that names the columns."""

from __future__ import annotations

from data.formats.base import Malformed, Options, first_lines
from data.formats.rates import LinkReader


def has_header(head: bytes, names: tuple[str, ...], separator: str | None) -> bool:
    """Whether the first line names all of ``names``."""
    lines = first_lines(head)
    return bool(lines) and set(names) <= set(lines[0].split(separator))


class TableReader(LinkReader):
    """Base of readers of a table about one link.

    A subclass has ``NAMES`` (columns it needs), ``SEPARATOR`` (None for blanks) and ``row``.
    """

    NAMES: tuple[str, ...] = ()
    SEPARATOR: str | None = ","

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._columns: list[int] = []
        self._width = 0

    def row(self, *values: str) -> bool:
        """Understand the values of ``NAMES`` in one row; False skips it."""
        raise NotImplementedError

    def line(self, text: str) -> bool:
        """Split one line."""
        if not text.strip() or text.startswith("#"):
            return False
        fields = text.strip("\ufeff").split(self.SEPARATOR)
        if set(self.NAMES) <= set(fields):
            if any(fields.count(name) > 1 for name in self.NAMES):
                self._columns = []
                raise Malformed("a header that names a column twice")
            self._columns = [fields.index(name) for name in self.NAMES]
            self._width = len(fields)
            return False
        if not self._columns:
            raise Malformed("no header line before it")
        if len(fields) != self._width:
            raise Malformed("too few fields" if len(fields) < self._width else "too many fields")
        return self.row(*(fields[i] for i in self._columns))
