"""MPTCP_FULL_INFO sampled by a program: ``time_s,token,subflow,ca=0,rtt=40437,cwnd=10,...``."""

from __future__ import annotations

import re

from data.formats.base import (
    CA_STATE,
    CWND,
    RETRANSMIT,
    SRTT,
    LineReader,
    Malformed,
    Options,
    Socket,
    first_lines,
    number,
    whole,
)

DESCRIPTION = "samples of MPTCP_FULL_INFO, one subflow a line"
_LINE = re.compile(r"\d+(\.\d+)?,[0-9a-f]{1,8},\d+,ca=\d+,rtt=\d+")


def sniff(head: bytes) -> int:
    """Recognise lines of the form above."""
    return 90 if any(_LINE.match(line) for line in first_lines(head)) else 0


def reader(options: Options) -> MpinfoReader:
    """Make a reader of one file."""
    return MpinfoReader(options)


class MpinfoReader(LineReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._numbers: dict[tuple[str, int], int] = {}
        self._last: dict[tuple[int, str], int] = {}

    def line(self, text: str) -> bool:
        """Understand one line."""
        fields = text.split(",")
        if not text or text.startswith("#"):
            return False
        if len(fields) < 4:
            raise Malformed("too few fields")
        time_us, token, subflow = round(number(fields[0]) * 1e6), fields[1], whole(fields[2])
        values = dict(field.split("=", 1) for field in fields[3:] if "=" in field)
        if not token or not 0 <= subflow < 1 << 15:
            raise Malformed("no token or no subflow")
        found = {name: whole(values[name]) for name in ("ca", "rtt", "cwnd", "retrans")
                 if name in values}  # fmt: skip
        if time_us < 0 or min(found.values(), default=0) < 0:
            raise Malformed("negative number")
        key = (token, subflow)
        if key not in self._numbers:
            self._numbers[key] = self.add_socket(Socket(token, subflow, token=token))
        socket = self._numbers[key]
        self.backwards += time_us < self._last.get((socket, "time"), time_us)
        self._last[socket, "time"] = time_us
        if found.get("rtt"):
            self.emit(socket, SRTT, time_us, found["rtt"])
        for name, variable in (("ca", CA_STATE), ("cwnd", CWND)):
            if name in found and found[name] != self._last.get((socket, name)):
                self._last[socket, name] = found[name]
                self.emit(socket, variable, time_us, found[name])
        more = found.get("retrans", 0) - self._last.get((socket, "retrans"), 0)
        if more > 0:
            self._last[socket, "retrans"] = found["retrans"]
            self.emit(socket, RETRANSMIT, time_us, more)
        return True
