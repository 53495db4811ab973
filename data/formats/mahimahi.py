"""Mahimahi's link traces: one line per opportunity to deliver 1500 bytes, in milliseconds.

The rate is counted over bins of 100 ms; one packet more in a bin is 120 kbit/s more.
"""

from __future__ import annotations

from data.formats.base import Malformed, Options, first_lines, whole
from data.formats.rates import LinkReader

DESCRIPTION = "mahimahi link trace: one millisecond number per line"
PACKET_BITS = 1500 * 8
BIN_US = 100_000


def sniff(head: bytes) -> int:
    """Recognise whole numbers that never fall, one per line."""
    lines = first_lines(head)
    if len(lines) < 2 or not all(line.isascii() and line.isdigit() for line in lines):
        return 0
    numbers = [int(line) for line in lines]
    return 50 if numbers == sorted(numbers) else 0


def reader(options: Options) -> MahimahiReader:
    """Make a reader of one file."""
    return MahimahiReader(options)


class MahimahiReader(LinkReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._bin = 0
        self._packets = 0
        self._shown = -1

    def line(self, text: str) -> bool:
        """Understand one line."""
        if not text.strip() or text.startswith("#"):
            return False
        time_ms = whole(text.strip())
        current = time_ms * 1000 // BIN_US
        if not 0 <= time_ms < 1 << 50:
            raise Malformed("negative number" if time_ms < 0 else "number too large")
        if current < self._bin:
            raise Malformed("time goes back")
        if current > self._bin:
            self._close()
            if current > self._bin + 1:
                self._show(self._bin + 1, 0)
            self._bin, self._packets = current, 0
        self._packets += 1
        return True

    def _close(self) -> None:
        self._show(self._bin, self._packets)

    def _show(self, at: int, packets: int) -> None:
        if packets != self._shown:
            self._shown = packets
            self.capacity(at * BIN_US, packets * PACKET_BITS * 1_000_000 // BIN_US)

    def end(self) -> None:
        """Emit the last bin."""
        if self._packets:
            self._close()
