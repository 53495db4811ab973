"""The old ``/proc/net/tcpprobe`` text of kernels before 4.16.

``time_s src:port dst:port length snd_nxt snd_una snd_cwnd ssthresh snd_wnd srtt [rcv_wnd]``

As in ftrace, srtt and snd_una are the outcome of the socket's previous line. Kernels differ in
the unit of srtt (ms or us): with "auto" it is the one nearer to the time that the log itself shows
between a segment sent (snd_nxt) and its acknowledgement (snd_una).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from data.formats.association import End, Flow, associate
from data.formats.base import (
    ACK,
    CWND,
    SRTT,
    LineReader,
    Malformed,
    Options,
    Socket,
    first_lines,
    number,
    whole,
)

DESCRIPTION = "/proc/net/tcpprobe text of old kernels"
_LINE = re.compile(r"\d+\.\d+ +\S+:\d+ +\S+:\d+ +\d+ +0x[0-9a-f]+ +0x[0-9a-f]+ ")
FULL_FIELDS = 10


def sniff(head: bytes) -> int:
    """Recognise lines of the form above."""
    return 90 if any(_LINE.match(line) for line in first_lines(head)) else 0


def reader(options: Options) -> TcpprobeReader:
    """Make a reader of one file."""
    return TcpprobeReader(options)


@dataclass
class _State:
    number: int
    time_us: int
    first_us: int
    una: int
    acked: int = 0
    received: int = 0
    cwnd: int = -1
    srtt: int = -1
    sent: int = -1
    sent_us: int = 0


class TcpprobeReader(LineReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._states: dict[tuple[End, End], _State] = {}
        self._votes_ms = 0

    def line(self, text: str) -> bool:
        """Understand one line."""
        fields = text.split()
        if not fields or fields[0].startswith("#"):
            return False
        if len(fields) < FULL_FIELDS:
            raise Malformed("too few fields")
        now = round(number(fields[0]) * 1e6)
        key = (_end(fields[1]), _end(fields[2]))
        length, cwnd, srtt = whole(fields[3]), whole(fields[6]), whole(fields[9])
        sent, una = _sequence(fields[4]), _sequence(fields[5])
        if min(now, length, cwnd, srtt) < 0:
            raise Malformed("negative number")
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(len(self._states), now, now, una)
            before = now
        else:
            before = state.time_us
            self.backwards += now < before
        step = (una - state.una) & 0xFFFFFFFF
        advanced = 0 < step < 1 << 31
        if advanced:
            state.una = una
            state.acked += step
            self.emit(state.number, ACK, before, state.acked)
        if srtt and (advanced or srtt != state.srtt):
            state.srtt = srtt
            self.emit(state.number, SRTT, before, srtt)
        if cwnd and cwnd != state.cwnd:
            state.cwnd = cwnd
            self.emit(state.number, CWND, now, cwnd)
        self._vote(state, sent, una, now)
        self.line_us = now
        state.received += length
        state.time_us = now
        return True

    def _vote(self, state: _State, sent: int, una: int, now: int) -> None:
        if state.sent < 0:
            state.sent, state.sent_us = sent, now
        elif (una - state.sent) & 0xFFFFFFFF < 1 << 31:
            seen_us = now - state.sent_us
            if seen_us > 0 and state.srtt > 0:
                # The nearer of srtt in us and srtt in ms, on a logarithmic scale.
                self._votes_ms += 1 if seen_us**2 > state.srtt**2 * 1000 else -1
            state.sent = -1

    def again(self) -> TcpprobeReader:
        """A new reader."""
        return TcpprobeReader(self.options)

    def sockets(self) -> list[Socket]:
        """Sockets by the rule of ``data.formats.association``."""
        unit = self.options.srtt_unit
        in_ms = unit == "ms" or (unit == "auto" and self._votes_ms > 0)
        sockets = associate(
            [
                Flow(local, remote, state.first_us, state.time_us, state.acked > state.received)
                for (local, remote), state in self._states.items()
            ]
        )
        for socket in sockets:
            socket.srtt_scale = 1000 if in_ms else 1
        return sockets


def _end(text: str) -> End:
    address, _, port = text.rpartition(":")
    value = whole(port)
    if not address or not 0 <= value < 65536:
        raise Malformed("not an address and a port")
    return address.strip("[]").removeprefix("::ffff:"), value


def _sequence(text: str) -> int:
    try:
        return int(text, 16) & 0xFFFFFFFF
    except ValueError:
        raise Malformed("not a number") from None
