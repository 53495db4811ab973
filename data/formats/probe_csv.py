"""The lab probe's CSV: one row per event of a TCP socket, columns found by their header names.

Only the raw RTT needs thought: ``rtt_us`` in a ``probe`` row is the RTT of the same socket's
previous ACK, because the trace point fires before the ACK is processed. It is emitted at the time
of that previous row, and only if that ACK gave a new sample.

A file may begin with a row of all 25 columns, as the pieces of a rotated log do. If it begins
with anything else that isn't a header, or a header in between can't be read, the rows after it
are refused: which column is which would be a guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from data.formats.base import (
    ACK,
    BYTE_ORDER_MARK,
    CA_STATE,
    CWND,
    EVENT,
    NEGATIVE,
    NO_HEADER,
    NO_TIME,
    NOT_A_NUMBER,
    RETRANSMIT,
    RTT,
    SKIPPED,
    SRTT,
    TOO_FEW,
    TOO_LARGE,
    TOO_MANY,
    UNKNOWN_EVENT,
    Batch,
    Lines,
    Options,
    Socket,
)
from data.formats.scan import (
    BIG,
    MINUS,
    Output,
    SocketTable,
    decimal,
    find_socket,
    hexadecimal,
    seconds,
)

DESCRIPTION = "the lab's probe log: CSV with the header ts,ev,cookie,token,..."

HEADER = (
    b"ts,ev,cookie,token,netns,sfid,sport,dport,ca_state,arg,ack_seq,snd_una,snd_nxt,data_len,"
    b"cwnd,ssthresh,srtt_us,rtt_us,min_rtt_us,delivered,lost,retrans_out,sacked_out,packets_out,"
    b"total_retrans"
)
KINDS = (b"probe", b"state", b"rtx", b"rtt")
REQUIRED = ("ts", "ev", "sport", "dport")
USED = (
    "ts", "ev", "token", "netns", "sfid", "sport", "dport", "ca_state", "arg",
    "ack_seq", "snd_una", "cwnd", "srtt_us", "rtt_us", "delivered",
)  # fmt: skip
(TS, EV, TOKEN, NETNS, SFID, SPORT, DPORT, STATE, ARG, ACK_SEQ, UNA, WINDOW, S_RTT, R_RTT,
 DELIVERED) = range(len(USED))  # fmt: skip

S_LAST_TIME, S_LAST_LINE, S_TIME, S_UNA, S_DELIVERED, S_RAW, S_ACK32, S_ACK, S_HIGH = range(9)
S_STATE, S_WINDOW, S_SRTT, S_SFID, S_FIRST_RTT, S_BACK = range(9, 15)
STATE_WIDTH = 15
MOST_EVENTS = 5
"""Events that one probe row can give: RTT, srtt, congestion state, ACK, cwnd."""


def sniff(head: bytes) -> int:
    """Recognise the header line, or rows of all 25 columns without one."""
    for line in head.split(b"\n")[:50]:
        names = line.rstrip(b"\r").split(b",")
        if names[:1] == [b"ts"] and all(name.encode() in names for name in REQUIRED):
            return 100
        if _is_row(names):
            return 90
    return 0


def _is_row(fields: list[bytes]) -> bool:
    """Whether these are the 25 columns of a row."""
    return len(fields) == HEADER.count(b",") + 1 and fields[1] in KINDS


def reader(options: Options) -> ProbeReader:
    """Make a reader of one file."""
    return ProbeReader(options)


class ProbeReader:
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        self.backwards = 0
        self._table = SocketTable(STATE_WIDTH)
        self._columns = _columns(HEADER)
        self._options = options
        self._begun = False
        self._lost = False

    def parse(self, lines: Lines) -> Batch:
        """Parse rows; a header line in between sets the columns from there on."""
        out = Output(len(lines.starts), MOST_EVENTS)
        events, line = 0, 0
        self._begin(lines)
        while line < len(lines.starts):
            line, events, stopped = _parse(
                lines.buffer, lines.starts, lines.ends, line, events, self._columns, self._lost,
                self._table.table, self._table.keys, self._table.state, self._table.count,
                out.status, out.line_time_us, out.socket, out.variable, out.time_us, out.value,
            )  # fmt: skip
            if stopped == 1:
                self._table.grow()
            elif stopped == 2:
                text = lines.buffer[lines.starts[line] : lines.ends[line]].tobytes()
                columns = _columns(text.removeprefix(BYTE_ORDER_MARK))
                self._lost = columns is None
                if columns is None:
                    out.status[line] = NO_HEADER
                else:
                    self._columns = columns
                    out.status[line] = SKIPPED
                line += 1
        self.backwards = self._table.total(S_BACK)
        return out.batch(events)

    def _begin(self, lines: Lines) -> None:
        """Look at the file's first line that says anything, unless that was done."""
        if self._begun:
            return
        for start, end in zip(lines.starts.tolist(), lines.ends.tolist(), strict=True):
            text = lines.buffer[start:end].tobytes()
            if text and not text.startswith(b"#"):
                self._begun = True
                self._lost = not text.startswith(b"ts") and not _is_row(text.split(b","))
                return

    def again(self) -> ProbeReader:
        """A reader with the same columns."""
        fresh = ProbeReader(self._options)
        fresh._columns, fresh._begun = self._columns, True
        return fresh

    def finish(self) -> None:
        """Nothing: every event is complete with its line."""

    def sockets(self) -> list[Socket]:
        """One connection per token and network namespace; without a token, per pair of ports."""
        result = []
        for key, state in self._table.rows():
            token, netns, ports = key
            sport, dport = ports >> 16, ports & 0xFFFF
            name = f"{token:08x}@{netns}" if token else f"{sport}-{dport}@{netns}"
            result.append(
                Socket(
                    connection=name,
                    subflow=max(state[S_SFID], 0),
                    sport=sport,
                    dport=dport,
                    token=f"{token:08x}" if token else None,
                    min_rtt_us=state[S_FIRST_RTT],
                    sends=state[S_ACK] > 0,
                )
            )
        return result


def _columns(header: bytes) -> Any:
    """Index into ``USED`` of each column, -1 for those that aren't used.

    None for a header that lacks a column that rows can't do without, or has one twice.
    """
    names = [name.strip() for name in header.decode("utf-8", "replace").split(",")]
    used = [name for name in names if name in USED]
    if not set(REQUIRED) <= set(used) or len(set(used)) != len(used):
        return None
    return np.array([USED.index(name) if name in USED else -1 for name in names], np.int8)


@njit(cache=True)
def _parse(  # type: ignore[no-untyped-def]
    buffer, starts, ends, line, n, columns, lost, table, keys, states, count,
    status, line_time, out_socket, out_variable, out_time, out_value,
):  # fmt: skip
    """Parse from ``line`` on; returns (line, events, 0 done, 1 table full, 2 a header)."""
    fields = np.zeros(len(USED), np.int64)
    has_una = False
    has_delivered = False
    for column in columns:
        if column == UNA:
            has_una = True
        if column == DELIVERED:
            has_delivered = True
    while line < len(starts):
        start, end = starts[line], ends[line]
        if end == start or buffer[start] == 35:  # "#"
            status[line] = SKIPPED
            line += 1
            continue
        named = start
        if end - start > 5 and buffer[start] == 239 and buffer[start + 2] == 191:  # an order mark
            named = start + 3
        if end - named > 2 and buffer[named] == 116 and buffer[named + 1] == 115:  # "ts"
            return line, n, 2
        if lost:
            status[line] = NO_HEADER
            line += 1
            continue
        # Fields of the row.
        fields[:] = 0
        bad = 0
        position = start
        column = 0
        while True:
            stop = position
            while stop < end and buffer[stop] != 44:
                stop += 1
            if column >= len(columns):
                bad = TOO_MANY
                break
            which = columns[column]
            if which >= 0:
                if which == TS:
                    value = seconds(buffer, position, stop)
                    if value < 0:
                        bad = NO_TIME
                        break
                elif which == EV:
                    value = np.int64(0)
                    length = stop - position
                    if length == 5 and buffer[position] == 112:  # probe
                        value = np.int64(1)
                    elif length == 5 and buffer[position] == 115:  # state
                        value = np.int64(2)
                    elif length == 3 and buffer[position] == 114 and buffer[position + 2] == 120:
                        value = np.int64(3)  # rtx
                    elif length == 3 and buffer[position] == 114 and buffer[position + 2] == 116:
                        value = np.int64(4)  # rtt: a smoothed sample once per window
                    else:
                        bad = UNKNOWN_EVENT
                        break
                else:
                    if which == TOKEN:
                        value = hexadecimal(buffer, position, stop)
                    else:
                        value = decimal(buffer, position, stop)
                    if value < 0:
                        if value == BIG:
                            bad = TOO_LARGE
                        elif value == MINUS:
                            bad = NEGATIVE
                        else:
                            bad = NOT_A_NUMBER
                        break
                fields[which] = value
            column += 1
            position = stop + 1
            if stop >= end:
                break
        if bad == 0 and column < len(columns):
            bad = TOO_FEW
        if bad == 0 and (fields[SPORT] > 65535 or fields[DPORT] > 65535 or fields[SFID] > 32767):
            bad = TOO_LARGE
        if bad != 0:
            status[line] = bad
            line += 1
            continue
        event = fields[EV]
        if event == 4:
            status[line] = SKIPPED
            line += 1
            continue
        ports = (fields[SPORT] << 16) | fields[DPORT]
        s = find_socket(table, keys, count, fields[TOKEN], fields[NETNS], ports)
        if s < 0:
            return line, n, 1
        state = states[s]
        now = fields[TS]
        line_time[line] = now
        last = state[S_LAST_TIME]
        if last >= 0 and now < last:
            state[S_BACK] = max(state[S_BACK], 0) + 1
        # A row written twice: the same bytes as this socket's last row.
        digest = np.int64(0)
        if now == last:
            for i in range(start, end):
                digest = (digest * 1099511628211) ^ np.int64(buffer[i])
            if digest == state[S_LAST_LINE]:
                status[line] = SKIPPED
                line += 1
                continue
        else:
            for i in range(start, end):
                digest = (digest * 1099511628211) ^ np.int64(buffer[i])
        state[S_LAST_LINE] = digest
        state[S_LAST_TIME] = now
        if fields[SFID] > 0:
            state[S_SFID] = fields[SFID]
        status[line] = EVENT
        if event == 2:
            if fields[ARG] > 255:
                status[line] = TOO_LARGE
                line += 1
                continue
            state[S_STATE] = fields[ARG]
            out_socket[n] = s
            out_variable[n] = CA_STATE
            out_time[n] = now
            out_value[n] = fields[ARG]
            n += 1
        elif event == 3:
            out_socket[n] = s
            out_variable[n] = RETRANSMIT
            out_time[n] = now
            out_value[n] = 1
            n += 1
        else:
            raw = fields[R_RTT]
            ack32 = fields[ACK_SEQ] & 0xFFFFFFFF
            if state[S_TIME] < 0:
                state[S_ACK32] = (fields[UNA] if has_una else ack32) & 0xFFFFFFFF
                state[S_ACK] = 0
                state[S_HIGH] = 0
                if raw > 0:
                    state[S_FIRST_RTT] = raw
            elif raw > 0:
                if has_una or has_delivered:
                    fresh = (has_una and fields[UNA] != state[S_UNA]) or (
                        has_delivered and fields[DELIVERED] != state[S_DELIVERED]
                    )
                else:
                    fresh = raw != state[S_RAW]
                if fresh:
                    out_socket[n] = s
                    out_variable[n] = RTT
                    out_time[n] = state[S_TIME]
                    out_value[n] = raw
                    n += 1
            if raw == 0 and fields[S_RTT] > 0 and fields[S_RTT] != state[S_SRTT]:
                state[S_SRTT] = fields[S_RTT]
                out_socket[n] = s
                out_variable[n] = SRTT
                out_time[n] = now
                out_value[n] = fields[S_RTT]
                n += 1
            state[S_RAW] = raw
            state[S_UNA] = fields[UNA]
            state[S_DELIVERED] = fields[DELIVERED]
            state[S_TIME] = now
            if fields[STATE] != state[S_STATE] and fields[STATE] < 256:
                state[S_STATE] = fields[STATE]
                out_socket[n] = s
                out_variable[n] = CA_STATE
                out_time[n] = now
                out_value[n] = fields[STATE]
                n += 1
            step = (ack32 - state[S_ACK32]) & 0xFFFFFFFF
            if step < 0x80000000 and step > 0:
                state[S_ACK32] = ack32
                state[S_ACK] += step
                out_socket[n] = s
                out_variable[n] = ACK
                out_time[n] = now
                out_value[n] = state[S_ACK]
                n += 1
            if fields[WINDOW] > 0 and fields[WINDOW] != state[S_WINDOW]:
                state[S_WINDOW] = fields[WINDOW]
                out_socket[n] = s
                out_variable[n] = CWND
                out_time[n] = now
                out_value[n] = fields[WINDOW]
                n += 1
        line += 1
    return line, n, 0
