"""Samples of ``ss -tin`` (and -tie, with or without -H, -O), each with a time stamp.

The time comes from a line of its own before the sample (``# 1795180301.5`` or the bare number of
seconds) or stands before each line (``ts '%.s'``). Addresses and details may be on one line or on
two. The MPTCP token of the socket's own side makes the connection; if there is none, see
``data.formats.association``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from data.formats.association import End, Flow, associate
from data.formats.base import (
    ACK,
    CWND,
    RETRANSMIT,
    SRTT,
    THROUGHPUT,
    LineReader,
    Malformed,
    Options,
    Socket,
    first_lines,
    number,
    whole,
)

DESCRIPTION = "samples of ss -tin with time stamps"
_STATES = (
    "ESTAB|SYN-SENT|SYN-RECV|FIN-WAIT-1|FIN-WAIT-2|TIME-WAIT|CLOSE-WAIT|LAST-ACK|LISTEN|CLOSING|"
    "UNCONN|CLOSED"
)
_TIME = re.compile(r"^(?:#\s*)?(\d+(?:\.\d+)?)(?:\s+(?=\S)|\s*$)")
_SOCKET = re.compile(
    rf"^(?:tcp\s+|mptcp\s+)?(?:{_STATES})\s+\d+\s+\d+\s+(\S+):(\d+|\*)\s+(\S+):(\d+|\*)"
)
_DETAIL = re.compile(r"\brtt:([0-9.]+)/")
_TOKEN = re.compile(r"\btoken:[0-9a-f]+\(id:\d+\)/([0-9a-f]+)\(id:(\d+)\)")
_RATE = re.compile(r"\bdelivery_rate[ :]([0-9.]+)([KMG]?)bps")
_CC = re.compile(r"(?:^|\s)([a-z][a-z0-9_]*) (?:wscale|rto):")
_FIELD = {
    name: re.compile(rf"(?<!\S){name}:([0-9.]+)") for name in ("cwnd", "bytes_acked", "minrtt")
}
_RETRANS = re.compile(r"(?<!\S)retrans:\d+/(\d+)")
_SCALE = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def sniff(head: bytes) -> int:
    """Recognise lines of sockets or of their details."""
    lines = [_TIME.sub("", line) for line in first_lines(head)]
    if any(_SOCKET.match(line.strip()) for line in lines):
        return 80
    return 70 if any(_DETAIL.search(line) and "cwnd:" in line for line in lines) else 0


def reader(options: Options) -> SsReader:
    """Make a reader of one file."""
    return SsReader(options)


@dataclass
class _State:
    number: int
    first_us: int
    time_us: int
    token: str | None = None
    cc: str | None = None
    base: int = -1
    acked: int = 0
    cwnd: int = -1
    retrans: int = 0
    min_rtt_us: int = -1


class SsReader(LineReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._states: dict[tuple[End, End], _State] = {}
        self._now: int | None = None
        self._ends: tuple[End, End] | None = None

    def line(self, text: str) -> bool:
        """Understand one line."""
        stamp = _TIME.match(text)
        if stamp:
            self._now = round(number(stamp.group(1)) * 1e6)
            self._ends = None if not text[stamp.end() :].strip() else self._ends
            text = text[stamp.end() :]
        text = text.strip()
        if not text or text.startswith("#") or text.startswith("State "):
            return False
        match = _SOCKET.match(text)
        if match:
            self._ends = None
            if "*" in (match.group(2), match.group(4)):
                return False
            self._ends = (
                _end(match.group(1), match.group(2)),
                _end(match.group(3), match.group(4)),
            )
            text = text[match.end() :]
        rtt = _DETAIL.search(text)
        if rtt is None:
            # Addresses whose details follow, or a socket without an RTT yet.
            if match or "cwnd:" in text:
                return False
            raise Malformed("neither a socket nor its details")
        if self._now is None:
            raise Malformed("no time stamp before it")
        if self._ends is None:
            raise Malformed("no socket before its details")
        self._sample(self._ends, self._now, round(number(rtt.group(1)) * 1000), text)
        return True

    def _sample(self, ends: tuple[End, End], now: int, srtt_us: int, text: str) -> None:
        state = self._states.get(ends)
        if state is None:
            state = self._states[ends] = _State(len(self._states), now, now)
        self.backwards += now < state.time_us
        state.time_us = now
        self.emit(state.number, SRTT, now, srtt_us)
        if match := _FIELD["cwnd"].search(text):
            cwnd = whole(match.group(1))
            if cwnd != state.cwnd:
                state.cwnd = cwnd
                self.emit(state.number, CWND, now, cwnd)
        if match := _FIELD["bytes_acked"].search(text):
            acked = whole(match.group(1))
            state.base = acked if state.base < 0 else state.base
            if acked - state.base > state.acked:
                state.acked = acked - state.base
                self.emit(state.number, ACK, now, state.acked)
        if match := _RETRANS.search(text):
            total = whole(match.group(1))
            if total > state.retrans:
                self.emit(state.number, RETRANSMIT, now, total - state.retrans)
                state.retrans = total
        if match := _RATE.search(text):
            rate = round(number(match.group(1)) * _SCALE[match.group(2)])
            self.emit(state.number, THROUGHPUT, now, rate)
        if match := _FIELD["minrtt"].search(text):
            state.min_rtt_us = round(number(match.group(1)) * 1000)
        if match := _TOKEN.search(text):
            state.token = match.group(1)
        if match := _CC.search(text):
            state.cc = match.group(1)

    def sockets(self) -> list[Socket]:
        """Connections by token, the others by the rule of ``data.formats.association``."""
        sockets = associate(
            [
                Flow(local, remote, state.first_us, state.time_us, True)
                for (local, remote), state in self._states.items()
            ]
        )
        seen: dict[str, int] = {}
        for socket, state in zip(sockets, self._states.values(), strict=True):
            socket.min_rtt_us = state.min_rtt_us
            if state.cc:
                socket.meta["cc"] = state.cc
            if state.token:
                seen[state.token] = seen.get(state.token, 0) + 1
                socket.connection, socket.token = state.token, state.token
                socket.subflow = seen[state.token]
        return sockets


def _end(address: str, port: str) -> End:
    # "10.0.2.1%l0": the device isn't part of the address.
    bare = address.strip("[]").partition("%")[0].removeprefix("::ffff:")
    return bare, whole(port)
