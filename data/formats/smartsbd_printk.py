"""SmartSBD's printk form: tuples that a kernel module writes to the kernel log.

``[ 3085.921619] smartsbd: CONNECTION,SUBFLOW,TIME_US,VARIABLE,VALUE``

What stands before ``smartsbd: `` (dmesg's time, a syslog prefix) doesn't matter. CONNECTION is any
word, SUBFLOW a number, VARIABLE a name of ``data.schema.VARIABLES`` or one of rtt, srtt, state,
cwnd; ``ack`` is the 32-bit number of the segment. Other messages of the kernel log are skipped.
"""

from __future__ import annotations

from data.formats.base import (
    ACK,
    VARIABLE_CODES,
    LineReader,
    Malformed,
    Options,
    Socket,
    whole,
)

DESCRIPTION = "SmartSBD's printk tuples in dmesg output"
MARK = "smartsbd: "
ALIASES = {"rtt": "rtt_us", "srtt": "srtt_us", "state": "ca_state", "cwnd": "snd_cwnd"}


def sniff(head: bytes) -> int:
    """Recognise the mark anywhere in the head."""
    return 90 if MARK.encode() in head else 0


def reader(options: Options) -> PrintkReader:
    """Make a reader of one file."""
    return PrintkReader(options)


class PrintkReader(LineReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._numbers: dict[tuple[str, int], int] = {}
        self._acks: dict[int, tuple[int, int]] = {}
        self._last_us: dict[int, int] = {}

    def line(self, text: str) -> bool:
        """Understand one line."""
        at = text.find(MARK)
        if at < 0:
            return False
        fields = [field.strip() for field in text[at + len(MARK) :].split(",")]
        if len(fields) != 5:
            raise Malformed("too few fields" if len(fields) < 5 else "too many fields")
        connection, subflow, time_us = fields[0], whole(fields[1]), whole(fields[2])
        variable = VARIABLE_CODES.get(ALIASES.get(fields[3].lower(), fields[3].lower()))
        value = whole(fields[4])
        if variable is None:
            raise Malformed(f"unknown state variable {fields[3][:40]!r}")
        if not connection or not 0 <= subflow < 1 << 15:
            raise Malformed("no connection or no subflow")
        if min(time_us, value) < 0:
            raise Malformed("negative number")
        if max(time_us, value) >= 1 << 62:
            raise Malformed("number too large")
        key = (connection, subflow)
        if key not in self._numbers:
            self._numbers[key] = self.add_socket(Socket(connection, subflow, token=connection))
        socket = self._numbers[key]
        self.backwards += time_us < self._last_us.get(socket, time_us)
        self._last_us[socket] = time_us
        if variable == ACK:
            value = self._unwrap(socket, value & 0xFFFFFFFF)
        self.emit(socket, variable, time_us, value)
        return True

    def _unwrap(self, socket: int, ack: int) -> int:
        last, total = self._acks.get(socket, (ack, 0))
        step = (ack - last) & 0xFFFFFFFF
        if step < 1 << 31:
            self._acks[socket] = (ack, total + step)
        return self._acks[socket][1]
