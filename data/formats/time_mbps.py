"""Text of ``time_s rate_Mbps`` per line, separated by tabs or blanks."""

from __future__ import annotations

import re

from data.formats.base import Malformed, Options, first_lines, number
from data.formats.rates import LinkReader

DESCRIPTION = "time in s and rate in Mbit/s, two columns of text"
_LINE = re.compile(r"^\s*\d+(\.\d*)?(e[-+]?\d+)?[ \t]+\d+(\.\d*)?(e[-+]?\d+)?\s*$", re.I)


def sniff(head: bytes) -> int:
    """Recognise two numbers per line."""
    lines = first_lines(head)
    return 40 if lines and all(_LINE.match(line) for line in lines) else 0


def reader(options: Options) -> TimeMbpsReader:
    """Make a reader of one file."""
    return TimeMbpsReader(options)


class TimeMbpsReader(LinkReader):
    """See ``data.formats.base.Reader``."""

    def line(self, text: str) -> bool:
        """Understand one line."""
        if not text.strip() or text.startswith("#"):
            return False
        fields = text.split()
        if len(fields) != 2:
            raise Malformed("two columns expected")
        self.capacity(round(number(fields[0]) * 1e6), number(fields[1]) * 1e6)
        return True
