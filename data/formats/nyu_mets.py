"""NYU-METS: a second per line, ``0.57,Mbits/sec``, or eight columns whose first is Mbit/s."""

from __future__ import annotations

import re

from data.formats.base import Malformed, Options, first_lines, number
from data.formats.rates import LinkReader

DESCRIPTION = "NYU-METS bandwidth: rate,unit per second, or its multivariate form"
UNITS = {"bits/sec": 1.0, "Kbits/sec": 1e3, "Mbits/sec": 1e6, "Gbits/sec": 1e9}
_PAIR = re.compile(r"^[0-9.]+,[KMG]?bits/sec$")
_EIGHT = re.compile(r"^[0-9.]+(,-?[0-9.]+){7}$")
COLUMNS = 8


def sniff(head: bytes) -> int:
    """Recognise either form."""
    lines = first_lines(head)
    if lines and all(_PAIR.match(line) for line in lines):
        return 80
    return 35 if lines and all(_EIGHT.match(line) for line in lines) else 0


def reader(options: Options) -> NyuMetsReader:
    """Make a reader of one file."""
    return NyuMetsReader(options)


class NyuMetsReader(LinkReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._second = 0

    def line(self, text: str) -> bool:
        """Understand one line."""
        if not text.strip() or text.startswith("#"):
            return False
        fields = text.strip().split(",")
        self._second += 1
        if len(fields) == 2 and fields[1] in UNITS:
            rate = number(fields[0]) * UNITS[fields[1]]
        elif len(fields) == COLUMNS:
            rate = number(fields[0]) * 1e6
        else:
            raise Malformed("neither rate,unit nor eight columns")
        self.capacity((self._second - 1) * 1_000_000, rate)
        return True
