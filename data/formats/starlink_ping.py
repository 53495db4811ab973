"""Pings over Starlink: ``epoch_s TAB sequence TAB rtt_ms``; -1 is a lost one and is skipped."""

from __future__ import annotations

import re

from data.formats.base import RTT, Malformed, Options, first_lines, number
from data.formats.rates import LinkReader

DESCRIPTION = "pings as epoch_s, sequence, rtt_ms"
_LINE = re.compile(r"^\d{9,}(\.\d+)?\t\d+\t-?\d+(\.\d+)?$")


def sniff(head: bytes) -> int:
    """Recognise lines of the form above."""
    lines = first_lines(head)
    return 80 if lines and all(_LINE.match(line) for line in lines) else 0


def reader(options: Options) -> PingReader:
    """Make a reader of one file."""
    return PingReader(options)


class PingReader(LinkReader):
    """See ``data.formats.base.Reader``."""

    def line(self, text: str) -> bool:
        """Understand one line."""
        if not text.strip() or text.startswith("#"):
            return False
        fields = text.split("\t")
        if len(fields) != 3:
            raise Malformed("three columns expected")
        time_us, rtt_ms = round(number(fields[0]) * 1e6), number(fields[2])
        if rtt_ms == -1:
            return False
        if rtt_ms < 0 or time_us < 0:
            raise Malformed("negative number")
        rtt_us = round(rtt_ms * 1000)
        # The probe's time is when it was sent.
        self.emit(self.link, RTT, time_us + rtt_us, rtt_us)
        return True
