"""What every format's reader takes and gives, so that no line can get lost on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    None where a format needs no sorting), ``reasons`` are texts that override ``REASONS``.
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

    def sockets(self) -> list[Socket]:
        """Describe the sockets seen, in the order of their numbers; called after the last line."""
        ...


class LineReader:
    """Base of the readers that go line by line in Python, where speed matters little.

    A subclass has ``line(text)``, which calls ``emit`` and returns True, returns False to skip the
    line, or raises ``Malformed``.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.backwards = 0
        self._events: list[tuple[int, int, int, int]] = []
        self._sockets: list[Socket] = []

    def line(self, text: str) -> bool:
        """Understand one line."""
        raise NotImplementedError

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
        reasons: dict[int, str] = {}
        data = lines.buffer.tobytes()
        for i, (start, end) in enumerate(
            zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
        ):
            kept = len(self._events)
            try:
                text = data[start:end].decode("utf-8")
                status[i] = EVENT if self.line(text) else SKIPPED
            except UnicodeDecodeError:
                status[i] = NOT_THIS_FORMAT
            except Malformed as error:
                del self._events[kept:]
                status[i], reasons[i] = NOT_THIS_FORMAT, str(error)
        return events_batch(status, self._events, reasons)


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
