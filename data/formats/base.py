"""Every format's reader takes and gives the types defined here, so that no line gets lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from data.schema import VARIABLES

VARIABLE_CODES = {name: code for code, name in enumerate(VARIABLES)}
RTT, SRTT, CA_STATE, ACK, CWND, RETRANSMIT, THROUGHPUT, CAPACITY = range(8)
"""Codes of ``VARIABLES`` in its order; plain constants because compiled readers need them."""

EVENT, SKIPPED = 0, 1
REASONS = (
    "not a number",
    "number too large",
    "negative number",
    "too few fields",
    "too many fields",
    "unknown kind of event",
    "time stamp missing or not a number",
    "line too long",
    "unrecognised format",
    "follows a damaged line, so its differences no longer add up",
    "not text of this format",
    "compressed data is damaged or ends early",
    "the tracer lost events here",
    "the header above it can't be read, so what its columns are isn't known",
)
"""Why a line is quarantined; a line's status is ``FIRST_REASON`` + index."""
FIRST_REASON = 2
(
    NOT_A_NUMBER,
    TOO_LARGE,
    NEGATIVE,
    TOO_FEW,
    TOO_MANY,
    UNKNOWN_EVENT,
    NO_TIME,
    TOO_LONG,
    UNRECOGNISED,
    AFTER_DAMAGE,
    NOT_THIS_FORMAT,
    DAMAGED_STREAM,
    LOST_EVENTS,
    NO_HEADER,
) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

MAX_LINE_BYTES = 1 << 18
"""No known log has lines near this; it bounds what one hostile line can cost."""


class Malformed(Exception):
    """A line that can't be understood; its message becomes the quarantine's reason."""


@dataclass(frozen=True)
class Options:
    """What the user may tell the readers."""

    srtt_unit: str = "auto"
    """Unit of srtt in the old tcpprobe text: auto, ms or us."""
    name: str = ""
    """The file's name, for formats that keep facts there."""


@dataclass
class Socket:
    """One subflow, as a reader describes it after the last line.

    ``connection`` groups the subflows of one connection within a file.
    """

    connection: str
    subflow: int = 1
    sport: int = -1
    dport: int = -1
    token: str | None = None
    min_rtt_us: int = -1
    sends: bool = True
    """Whether it sends more than it receives; the two kinds never share a connection."""
    srtt_scale: int = 1
    """What the emitted srtt has to be multiplied by, if the unit shows only at the end."""
    meta: dict[str, str] = field(default_factory=dict)
    """Any of ``label``, ``dataset``, ``kernel``, ``cc``."""


class Lines(NamedTuple):
    """Complete lines of a file: ``buffer[starts[i]:ends[i]]``, line ends cut off."""

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Batch(NamedTuple):
    """What a reader found in some lines.

    ``status`` has one entry per line (``EVENT``, ``SKIPPED`` or a reason); the four event columns
    are of one length and name the reader's own socket numbers. ``line_time_us`` is per line (or
    None if a format needs no sorting), ``reasons`` are texts that override ``REASONS``.
    """

    status: NDArray[np.uint8]
    socket: NDArray[np.int32]
    variable: NDArray[np.int8]
    time_us: NDArray[np.int64]
    value: NDArray[np.int64]
    line_time_us: NDArray[np.int64] | None = None
    reasons: dict[int, str] | None = None


class Reader(Protocol):
    """Stateful reader of one file."""

    backwards: int
    """Lines whose time stamp lies before their socket's previous one."""

    def parse(self, lines: Lines) -> Batch:
        """Understand the next lines of the file."""
        ...

    def again(self) -> Reader | None:
        """A reader to start anew with the lines in the order of time; None if none is needed.

        Asked only after lines whose time goes back: readers whose events depend on the order
        return one that knows what the header lines said.
        """
        ...

    def finish(self) -> Batch | None:
        """Events that only the end of the file completes (its ``status`` is empty)."""
        ...

    def sockets(self) -> list[Socket]:
        """Describe the sockets seen, in the order of their numbers; called after ``finish``."""
        ...


class LineReader:
    """Base of the readers that go line by line in Python, where speed matters little.

    Readers whose events depend on the order of lines set ``line_us``, the line's time.
    A subclass has ``line(text)``, which calls ``emit`` and returns True, returns False to skip the
    line, or raises ``Malformed``.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.backwards = 0
        self.line_us = -1
        self._events: list[tuple[int, int, int, int]] = []
        self._sockets: list[Socket] = []

    def line(self, text: str) -> bool:
        """Understand one line."""
        raise NotImplementedError

    def again(self) -> Reader | None:
        """No need: events are sorted later anyway."""
        return None

    def end(self) -> None:
        """Emit what only the end of the file completes."""

    def finish(self) -> Batch:
        """Events that ``end`` emits."""
        self._events = []
        self.end()
        return events_batch(np.zeros(0, np.uint8), self._events)

    def emit(self, socket: int, variable: int, time_us: int, value: int) -> None:
        """Add an event; numbers that no int64 holds make the line malformed."""
        if not (-(1 << 63) <= time_us < 1 << 63 and -(1 << 63) <= value < 1 << 63):
            raise Malformed("number too large")
        self._events.append((socket, variable, time_us, value))

    def add_socket(self, socket: Socket) -> int:
        """Register a socket and give its number."""
        self._sockets.append(socket)
        return len(self._sockets) - 1

    def sockets(self) -> list[Socket]:
        """Describe the sockets seen."""
        return self._sockets

    def parse(self, lines: Lines) -> Batch:
        """Feed each line to ``line``; a malformed one leaves no event behind."""
        self._events = []
        status = np.zeros(len(lines.starts), np.uint8)
        line_time_us = np.full(len(lines.starts), -1, np.int64)
        reasons: dict[int, str] = {}
        data = lines.buffer.tobytes()
        for i, (start, end) in enumerate(
            zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
        ):
            kept = len(self._events)
            self.line_us = -1
            try:
                text = data[start:end].decode("utf-8")
                status[i] = EVENT if self.line(text) else SKIPPED
                line_time_us[i] = self.line_us
            except UnicodeDecodeError:
                status[i] = NOT_THIS_FORMAT
            except Malformed as error:
                del self._events[kept:]
                status[i], reasons[i] = NOT_THIS_FORMAT, str(error)
        return events_batch(status, self._events, reasons)._replace(line_time_us=line_time_us)


def events_batch(
    status: NDArray[np.uint8],
    events: list[tuple[int, int, int, int]],
    reasons: dict[int, str] | None = None,
) -> Batch:
    """Columns from (socket, variable, time_us, value) tuples."""
    table = np.array(events, np.int64).reshape(-1, 4)
    return Batch(
        status,
        table[:, 0].astype(np.int32),
        table[:, 1].astype(np.int8),
        table[:, 2].copy(),
        table[:, 3].copy(),
        None,
        reasons,
    )


def number(text: str) -> float:
    """Parse a finite decimal number.

    Raises
    ------
    Malformed
        For anything else, "nan" and "inf" included.
    """
    try:
        value = float(text)
    except ValueError:
        raise Malformed("not a number") from None
    if not abs(value) < float("inf") or "_" in text:
        raise Malformed("not a number")
    return value


@lru_cache(maxsize=1)
def first_lines(head: bytes, most: int = 40) -> tuple[str, ...]:
    """Complete lines at the start of a file for ``sniff``; empty when it isn't UTF-8 text.

    Every format asks for those of the same file, so the last answer is kept. Comments (#) and
    blank lines are left out. A head without any line end is one line.
    """
    cut = head.rfind(b"\n")
    try:
        text = (head[:cut] if cut >= 0 else head).decode("utf-8-sig")
    except UnicodeDecodeError:
        return ()
    lines = (line.strip("\r") for line in text.split("\n")[: 4 * most])
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))[:most]


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Reading removes it from a file's start; where files were put together it stands in between."""


def whole(text: str) -> int:
    """Parse an integer of plain decimal digits, with an optional minus sign.

    Raises
    ------
    Malformed
        For anything else.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise Malformed("not a number")
    return int(text)
