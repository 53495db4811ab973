"""The text that iperf3 prints: ``[  5]   0.00-1.00   sec  1.60 MBytes  13.4 Mbits/sec``."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from data.formats.base import (
    RETRANSMIT,
    THROUGHPUT,
    LineReader,
    Malformed,
    Options,
    Socket,
    number,
    whole,
)

DESCRIPTION = "iperf3's printed intervals"
_START = re.compile(rb"^iperf 3\.\d|^\[ ID\] Interval|^Connecting to host ", re.M)
_TIME = re.compile(r"^Time: \w+, (\d+ \w+ \d+ \d+:\d+:\d+) GMT")
_LOCAL = re.compile(r"^\[ *(\d+)\] local \S+ port (\d+) connected to \S+ port (\d+)")
_INTERVAL = re.compile(
    r"^\[ *(\d+)\] +([0-9.]+)-([0-9.]+) +sec +[0-9.]+ [KMGT]?Bytes +([0-9.]+) ([KMGT]?)bits/sec"
    r"(?: +(\d+) +[0-9.]+ [KMGT]?Bytes)?"
)
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TOTAL = ("sender", "receiver")


def sniff(head: bytes) -> int:
    """Recognise the first lines of a run."""
    return 60 if _START.search(head) else 0


def reader(options: Options) -> IperfTextReader:
    """Make a reader of one file."""
    return IperfTextReader(options)


class IperfTextReader(LineReader):
    """See ``data.formats.base.Reader``; lines of other kinds are skipped."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._start_us = 0
        self._numbers: dict[str, int] = {}

    def line(self, text: str) -> bool:
        """Understand one line."""
        if match := _TIME.match(text):
            try:
                when = datetime.strptime(match.group(1), "%d %b %Y %H:%M:%S")
            except ValueError:
                raise Malformed("time stamp not understood") from None
            self._start_us = int(when.replace(tzinfo=UTC).timestamp()) * 1_000_000
            return False
        if match := _LOCAL.match(text):
            ports = [whole(port) for port in match.groups()[1:]]
            if max(ports) > 65535:
                raise Malformed("number too large")
            self._numbers[match.group(1)] = self.add_socket(
                Socket("run", len(self._numbers) + 1, ports[0], ports[1])
            )
            return False
        match = _INTERVAL.match(text)
        if not match or text.rstrip().endswith(_TOTAL):
            return False
        socket = self._numbers.get(match.group(1))
        if socket is None:
            raise Malformed("interval of a stream that wasn't announced")
        end_us = self._start_us + round(number(match.group(3)) * 1e6)
        rate = number(match.group(4)) * _SCALE[match.group(5)]
        self.emit(socket, THROUGHPUT, end_us, round(rate))
        if match.group(6) and whole(match.group(6)):
            self.emit(socket, RETRANSMIT, end_us, whole(match.group(6)))
        return True
