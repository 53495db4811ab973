"""iperf3's JSON: the streams of each interval, whatever the size of the file.

The document is never held as a whole: objects without inner objects are cut out as they pass. The
line on which a stream's object ends is the line of its events; all others only carry structure.
``rtt`` is the kernel's smoothed RTT, ``snd_cwnd`` is in bytes and is divided by the MSS.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from data.formats.base import (
    CWND,
    EVENT,
    NOT_THIS_FORMAT,
    RETRANSMIT,
    SKIPPED,
    SRTT,
    THROUGHPUT,
    Batch,
    Lines,
    Options,
    Socket,
    events_batch,
)

DESCRIPTION = "iperf3's JSON output (-J, also --json-stream)"
PIECES = True
"""Lines may be of any length and are given in pieces."""
_TEXT = rb'"(?:[^"\\]|\\.)*"'
_OBJECT = re.compile(_TEXT + rb"|\{(?:[^{}\"]|" + _TEXT + rb")*\}|\{", re.S)
"""A string, an object without inner ones, or the start of another object: strings are matched so
that braces in them don't count."""
_END = re.compile(rb'"end"\s*:\s*\{|"event"\s*:\s*"end"')
_MSS = re.compile(rb'"(?:tcp_mss|tcp_mss_default)"\s*:\s*(\d{1,9})')
OPENING = ord("{")
MOST_CARRY = 1 << 16
"""An object without inner ones is far smaller; more without one isn't this format."""


def sniff(head: bytes) -> int:
    """Recognise the keys of the first object."""
    if not head.lstrip(b" \r\n\t\xef\xbb\xbf").startswith(b"{"):
        return 0
    if b'"intervals"' in head or b'"connected"' in head or b'"event":"start"' in head:
        return 90
    return 0


def reader(options: Options) -> Iperf3Reader:
    """Make a reader of one file."""
    return Iperf3Reader(options)


class Iperf3Reader:
    """See ``data.formats.base.Reader``; ``parse`` may get a line in several pieces."""

    def __init__(self, options: Options) -> None:
        self.backwards = 0
        self._carry = b""
        self._numbers: dict[int, int] = {}
        self._ports: dict[int, tuple[int, int]] = {}
        self._start_us = 0
        self._mss = 0
        self._ended = False
        self._cwnd: dict[int, int] = {}

    def parse(self, lines: Lines) -> Batch:
        """Find the streams' objects that end in these lines."""
        status = np.full(len(lines.starts), SKIPPED, np.uint8)
        events: list[tuple[int, int, int, int]] = []
        reasons: dict[int, str] = {}
        text = lines.buffer.tobytes()
        whole_text = self._carry + text
        shift = len(self._carry)
        ending = _END.search(whole_text)
        if not self._mss and (match := _MSS.search(whole_text)):
            self._mss = int(match.group(1))
        done, opened = 0, -1
        for match in _OBJECT.finditer(whole_text):
            done = match.end()
            if whole_text[match.start()] != OPENING:
                continue
            opened = match.start() if match.end() - match.start() == 1 else -1
            if opened >= 0:
                continue
            if self._ended or (ending and match.start() > ending.start()):
                break
            line = int(np.searchsorted(lines.starts, match.end() - 1 - shift, "right")) - 1
            found, reason = self._object(match.group(0))
            if reason:
                status[line], reasons[line] = NOT_THIS_FORMAT, reason
            elif found:
                events += found
                if status[line] == SKIPPED:
                    status[line] = EVENT
        self._ended = self._ended or ending is not None
        self._carry = (
            b"" if self._ended else whole_text[opened if opened >= 0 else done :][-MOST_CARRY:]
        )
        return events_batch(status, events, reasons)

    def _object(self, text: bytes) -> tuple[list[tuple[int, int, int, int]], str]:
        try:
            item: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError):
            return [], "not JSON"
        if "local_port" in item and "socket" in item:
            self._ports[item["socket"]] = (
                _port(item["local_port"]),
                _port(item.get("remote_port")),
            )
        if isinstance(item.get("timesecs"), int) and 0 <= item["timesecs"] < 1 << 40:
            self._start_us = item["timesecs"] * 1_000_000
        if not {"socket", "end", "bits_per_second"} <= item.keys():
            return [], ""
        try:
            return self._interval(item), ""
        except (TypeError, ValueError, OverflowError):
            return [], "a stream's interval without its numbers"

    def _interval(self, item: dict[str, Any]) -> list[tuple[int, int, int, int]]:
        identity = int(item["socket"])
        end_us = self._start_us + round(float(item["end"]) * 1e6)
        values = {
            THROUGHPUT: round(float(item["bits_per_second"])),
            SRTT: int(item.get("rtt", 0)),
            RETRANSMIT: int(item.get("retransmits", 0)),
            CWND: int(item.get("snd_cwnd", 0)) // self._mss if self._mss else 0,
        }
        if any(not 0 <= value < 1 << 62 for value in (end_us, *values.values())):
            raise ValueError
        socket = self._numbers.setdefault(identity, len(self._numbers))
        found = [(socket, THROUGHPUT, end_us, values[THROUGHPUT])]
        if values[SRTT]:
            found.append((socket, SRTT, end_us, values[SRTT]))
        if values[RETRANSMIT]:
            found.append((socket, RETRANSMIT, end_us, values[RETRANSMIT]))
        if values[CWND] and values[CWND] != self._cwnd.get(socket):
            self._cwnd[socket] = values[CWND]
            found.append((socket, CWND, end_us, values[CWND]))
        return found

    def again(self) -> None:
        """Never: the file has its order by construction."""

    def finish(self) -> None:
        """Nothing: an object that the end cuts short isn't one."""

    def sockets(self) -> list[Socket]:
        """One connection per file, a subflow per stream."""
        sockets = []
        for number, identity in enumerate(self._numbers, start=1):
            sport, dport = self._ports.get(identity, (-1, -1))
            sockets.append(Socket("run", number, sport, dport))
        return sockets


def _port(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 65536 else -1
