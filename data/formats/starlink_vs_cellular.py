"""Starlink and cellular throughput while driving: ``time,throughput,speed`` (Mbit/s, mph)."""

from __future__ import annotations

from datetime import UTC, datetime

from data.formats.base import Malformed, Options, number
from data.formats.tables import TableReader, has_header

DESCRIPTION = "CSV of time,throughput,speed of Satellite-vs-Cellular"
NAMES = ("time", "throughput", "speed")
ZONES = {"UTC": 0, "GMT": 0, "EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7,
         "PDT": -7, "PST": -8}  # fmt: skip
"""Hours from UTC; the zone stands in every row."""


def sniff(head: bytes) -> int:
    """Recognise the header."""
    return 90 if has_header(head, NAMES, ",") else 0


def reader(options: Options) -> StarlinkReader:
    """Make a reader of one file."""
    return StarlinkReader(options)


class StarlinkReader(TableReader):
    """See ``data.formats.base.Reader``."""

    NAMES = NAMES

    def row(self, *values: str) -> bool:
        """Understand one row."""
        stamp, _, zone = values[0].rpartition(" ")
        if zone not in ZONES:
            raise Malformed("time zone not understood")
        try:
            when = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            raise Malformed("time stamp not understood") from None
        time_us = (int(when.timestamp()) - ZONES[zone] * 3600) * 1_000_000
        self.capacity(time_us, number(values[1]) * 1e6)
        return True
