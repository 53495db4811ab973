"""CICV5G: delays of an echo over 5G, from publication to return, with one clock (so an RTT)."""

from __future__ import annotations

from data.formats.base import RTT, Malformed, Options, whole
from data.formats.tables import TableReader, has_header

DESCRIPTION = "CICV5G table of pub_time(ms) sub_time(ms) delay(ms)"
NAMES = ("pub_time(ms)", "sub_time(ms)", "delay(ms)")


def sniff(head: bytes) -> int:
    """Recognise the header."""
    return 90 if has_header(head, NAMES, None) else 0


def reader(options: Options) -> CicvReader:
    """Make a reader of one file."""
    return CicvReader(options)


class CicvReader(TableReader):
    """See ``data.formats.base.Reader``."""

    NAMES = NAMES
    SEPARATOR = None

    def row(self, *values: str) -> bool:
        """Understand one row."""
        back_ms, delay_ms = whole(values[1]), whole(values[2])
        if back_ms < 0 or delay_ms < 0:
            raise Malformed("negative number")
        self.emit(self.link, RTT, back_ms * 1000, delay_ms * 1000)
        return True
