"""tshark's CSV of one subflow, seen at one host: header ``frame.time_epoch,ip.src,...``.

Each direction is a socket: acknowledgements of its data give ``ack``, sequence numbers that go
back give ``retransmit``. ``tcp.analysis.ack_rtt`` is a round trip only for data of the host that
captured, and is kept for it alone: that host is the side whose handshake was answered later.
Subflows are in files of their own: ``--connection-key`` joins them.
"""

from __future__ import annotations

from dataclasses import dataclass

from data.formats.base import (
    ACK,
    RETRANSMIT,
    RTT,
    LineReader,
    Malformed,
    Options,
    Socket,
    number,
    whole,
)
from data.formats.tables import has_header

DESCRIPTION = "tshark's CSV of one MPTCP subflow"
NAMES = (
    "frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack",
    "tcp.len", "tcp.flags", "tcp.analysis.ack_rtt",
)  # fmt: skip
SYN, RST = 0x02, 0x04


def sniff(head: bytes) -> int:
    """Recognise the header."""
    return 95 if has_header(head, NAMES, ",") else 0


def reader(options: Options) -> TsharkReader:
    """Make a reader of one file."""
    return TsharkReader(options)


@dataclass
class _Side:
    """One direction of a subflow."""

    number: int
    sent: int = 0
    acked: int = 0
    syn_rtt_us: int = -1


class TsharkReader(LineReader):
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._sides: dict[tuple[str, str, int, int], _Side] = {}
        self._columns: list[int] = []
        self._width = 0
        self._last_us = 0

    def line(self, text: str) -> bool:
        """Understand one packet."""
        fields = text.removeprefix("\ufeff").split(",")
        if not text.strip() or text.startswith("#"):
            return False
        if set(NAMES) <= set(fields):
            if any(fields.count(name) > 1 for name in NAMES):
                self._columns = []
                raise Malformed("a header that names a column twice")
            self._columns, self._width = [fields.index(name) for name in NAMES], len(fields)
            return False
        if not self._columns:
            raise Malformed("no header line before it")
        # Options that occur several times in a packet are repeated in their last field.
        if len(fields) < self._width:
            raise Malformed("too few fields")
        stamp, source, target, sport, dport, seq, ack, length, flags, rtt = (
            fields[i] for i in self._columns
        )
        ports = whole(sport), whole(dport)
        numbers = [whole(value) if value else 0 for value in (seq, ack, length)]
        now = round(number(stamp) * 1e6)
        if min(now, *numbers, *ports) < 0:
            raise Malformed("negative number")
        if max(ports) > 65535:
            raise Malformed("number too large")
        try:
            flag = int(flags, 16)
        except ValueError:
            raise Malformed("not a number") from None
        rtt_us = round(number(rtt) * 1e6) if rtt else -1
        self.backwards += now < self._last_us
        self._last_us = now
        self._packet(
            now, (source, target, *ports), (target, source, ports[1], ports[0]),
            (numbers[0], numbers[1], numbers[2]), flag, rtt_us,
        )  # fmt: skip
        return True

    def _packet(
        self,
        now: int,
        forward: tuple[str, str, int, int],
        back: tuple[str, str, int, int],
        numbers: tuple[int, int, int],
        flag: int,
        rtt_us: int,
    ) -> None:
        mine, other = self._side(forward), self._side(back)
        seq, ack, length = numbers
        if length:
            if seq < mine.sent:
                self.emit(mine.number, RETRANSMIT, now, 1)
            mine.sent = max(mine.sent, seq + length)
        if flag & RST:
            return
        if ack > other.acked:
            other.acked = ack
            self.emit(other.number, ACK, now, ack)
        if rtt_us < 0:
            return
        if other.syn_rtt_us < 0:
            # The first answer to a side is the one to its SYN.
            other.syn_rtt_us = rtt_us
        if other.syn_rtt_us > mine.syn_rtt_us >= 0 or flag & SYN:
            self.emit(other.number, RTT, now, rtt_us)

    def _side(self, key: tuple[str, str, int, int]) -> _Side:
        side = self._sides.get(key)
        if side is None:
            side = self._sides[key] = _Side(self.add_socket(Socket("", 1, key[2], key[3])))
        return side

    def sockets(self) -> list[Socket]:
        """Both directions: a connection each."""
        for key, side in self._sides.items():
            socket = self._sockets[side.number]
            socket.connection = f"{key[2]}-{key[3]}"
            reverse = self._sides.get((key[1], key[0], key[3], key[2]))
            socket.sends = side.sent > (reverse.sent if reverse else 0)
        return self._sockets
