"""UCC's 5G traces (G-NetTrack): downlink rate in kbit/s, about one row a second.

Rows of an idle phone (State other than D) and repeated seconds are skipped; the local time in the
log is taken for UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime

from data.formats.base import Malformed, Options, number
from data.formats.tables import TableReader, has_header

DESCRIPTION = "G-NetTrack CSV of the UCC 5G dataset"
NAMES = ("Timestamp", "DL_bitrate", "State")


def sniff(head: bytes) -> int:
    """Recognise the header."""
    return 90 if has_header(head, NAMES, ",") else 0


def reader(options: Options) -> UccReader:
    """Make a reader of one file."""
    return UccReader(options)


class UccReader(TableReader):
    """See ``data.formats.base.Reader``."""

    NAMES = NAMES

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._previous = ""

    def row(self, *values: str) -> bool:
        """Understand one row."""
        stamp, rate, state = values
        if state != "D" or stamp == self._previous:
            return False
        try:
            when = datetime.strptime(stamp, "%Y.%m.%d_%H.%M.%S").replace(tzinfo=UTC)
        except ValueError:
            raise Malformed("time stamp not understood") from None
        self.capacity(int(when.timestamp()) * 1_000_000, number(rate) * 1000)
        self._previous = stamp
        return True
