"""The readers of capacity traces share this base: one link per file, one rate per line."""

from __future__ import annotations

from data.formats.base import CAPACITY, LineReader, Malformed, Options, Socket


class LinkReader(LineReader):
    """A file about one link, which stands as a connection with one subflow."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.link = self.add_socket(Socket("link"))
        self._last_us = -(1 << 62)

    def capacity(self, time_us: int, rate_bps: float) -> None:
        """Emit the link's rate from a time on (us, bit/s)."""
        if rate_bps < 0 or time_us < 0:
            raise Malformed("negative number")
        self.backwards += time_us < self._last_us
        self._last_us = time_us
        self.emit(self.link, CAPACITY, time_us, round(rate_bps))
