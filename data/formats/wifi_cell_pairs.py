"""WiFi and cellular link traces taken side by side: ``second,bytes_per_second``."""

from __future__ import annotations

import re

from data.formats.base import Malformed, Options, first_lines, whole
from data.formats.rates import LinkReader

DESCRIPTION = "link trace of second,bytes per second"
_LINE = re.compile(r"^\d+,\d+$")


def sniff(head: bytes) -> int:
    """Recognise pairs of whole numbers whose first counts seconds."""
    lines = first_lines(head)
    if not lines or not all(_LINE.match(line) for line in lines):
        return 0
    seconds = [int(line.split(",")[0]) for line in lines]
    return 45 if seconds == sorted(set(seconds)) else 0


def reader(options: Options) -> WifiCellReader:
    """Make a reader of one file."""
    return WifiCellReader(options)


class WifiCellReader(LinkReader):
    """See ``data.formats.base.Reader``."""

    def line(self, text: str) -> bool:
        """Understand one line."""
        if not text.strip() or text.startswith("#"):
            return False
        fields = text.split(",")
        if len(fields) != 2:
            raise Malformed("two columns expected")
        self.capacity(whole(fields[0]) * 1_000_000, whole(fields[1]) * 8)
        return True
