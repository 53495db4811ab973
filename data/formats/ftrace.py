"""Text of ftrace or ``perf script``: tcp_probe, tcp_cong_state_set, tcp_retransmit_skb.

Both ends of a connection and all network namespaces appear; ``src`` is the socket's own end.
tcp_probe fires before its ACK is processed, so srtt and snd_una of a line are the outcome of the
socket's previous ACK and are emitted at that one's time. There is no raw RTT and no token: see
``data.formats.association`` for how subflows find together.
"""

from __future__ import annotations

import re

import numpy as np
from numba import njit

from data.formats.association import Flow, associate
from data.formats.base import (
    ACK,
    CA_STATE,
    CWND,
    EVENT,
    LOST_EVENTS,
    NO_TIME,
    NOT_A_NUMBER,
    NOT_THIS_FORMAT,
    RETRANSMIT,
    SKIPPED,
    SRTT,
    TOO_FEW,
    TOO_LARGE,
    Batch,
    Lines,
    Options,
    Socket,
)
from data.formats.scan import (
    Output,
    SocketTable,
    decimal,
    find_socket,
    hexadecimal,
    run_parser,
    seconds,
)

DESCRIPTION = "ftrace or perf script text of tcp:tcp_probe and its companions"

(S_LAST_TIME, S_LAST_LINE, S_TIME, S_UNA, S_ACK, S_STATE, S_WINDOW, S_SRTT, S_FIRST, S_BACK,
 S_RECEIVED) = range(11)  # fmt: skip
STATE_WIDTH = 11
MOST_EVENTS = 5
_LINE = re.compile(rb"[0-9]: +(tcp:)?tcp_(probe|cong_state_set|retransmit_skb): ")


def sniff(head: bytes) -> int:
    """Recognise one of the three events, or the header of the tracer."""
    if _LINE.search(head):
        return 95
    return 60 if head.startswith(b"# tracer: ") else 0


def reader(options: Options) -> FtraceReader:
    """Make a reader of one file."""
    return FtraceReader(options)


class FtraceReader:
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        self.backwards = 0
        self._options = options
        self._table = SocketTable(STATE_WIDTH)

    def parse(self, lines: Lines) -> Batch:
        """Parse lines of the trace."""
        out = Output(len(lines.starts), MOST_EVENTS)
        events = run_parser(_parse, lines, self._table, out)
        self.backwards = self._table.total(S_BACK)
        return out.batch(events)

    def again(self) -> FtraceReader:
        """A new reader."""
        return FtraceReader(self._options)

    def finish(self) -> None:
        """Nothing: every event is complete with its line."""

    def sockets(self) -> list[Socket]:
        """Sockets by the rule of ``data.formats.association``."""
        flows = []
        for key, state in self._table.rows():
            sport, dport = key[2] >> 16, key[2] & 0xFFFF
            sends = max(state[S_ACK], 0) > max(state[S_RECEIVED], 0)
            flows.append(
                Flow(
                    (key[0], sport), (key[1], dport), state[S_FIRST], state[S_LAST_TIME], sends
                )
            )  # fmt: skip
        return associate(flows)


@njit(cache=True)
def _is(buffer, start, end, word):  # type: ignore[no-untyped-def]
    """Whether the text is ``word``."""
    if end - start != len(word):
        return False
    i = 0
    while i < len(word) and buffer[start + i] == word[i]:
        i += 1
    return i == len(word)


@njit(cache=True)
def _address(buffer, start, end):  # type: ignore[no-untyped-def]
    """Number that stands for an address: brackets and the prefix of mapped IPv4 don't count."""
    if end > start and buffer[start] == 91:  # "["
        start += 1
        if end > start and buffer[end - 1] == 93:
            end -= 1
    if end - start > 7 and buffer[start] == 58 and buffer[start + 2] == 102:  # "::ffff:"
        mapped = buffer[start + 1] == 58 and buffer[start + 6] == 58
        for i in range(start + 2, start + 6):
            mapped = mapped and buffer[i] == 102
        if mapped:
            start += 7
    value = np.int64(1469598103934665603)
    for i in range(start, end):
        value = (value ^ np.int64(buffer[i])) * np.int64(1099511628211)
    return value


@njit(cache=True)
def _last_colon(buffer, start, end):  # type: ignore[no-untyped-def]
    i = end - 1
    while i > start and buffer[i] != 58:
        i -= 1
    return i


PROBE = np.frombuffer(b"tcp_probe", np.uint8)
STATE_SET = np.frombuffer(b"tcp_cong_state_set", np.uint8)
RESENT = np.frombuffer(b"tcp_retransmit_skb", np.uint8)


@njit(cache=True)
def _parse(  # type: ignore[no-untyped-def]
    buffer, starts, ends, line, n, table, keys, states, count,
    status, line_time, out_socket, out_variable, out_time, out_value,
):  # fmt: skip
    """Parse from ``line`` on; returns (line, events, whether the socket table is full)."""
    while line < len(starts):
        start, end = starts[line], ends[line]
        if end == start or buffer[start] == 35:  # "#"
            status[line] = SKIPPED
            line += 1
            continue
        # The time stamp is the first word that ends in a colon and is a number.
        now = np.int64(-1)
        word = start
        i = start
        while i < end:
            byte = buffer[i]
            if byte == 32 or byte == 9:
                word = i + 1
            elif byte == 58 and i + 1 < end and buffer[i + 1] == 32 and i > word:
                now = seconds(buffer, word, i)
                if now >= 0:
                    break
            i += 1
        if now < 0:
            lost = end - start > 6 and buffer[start] == 67 and buffer[start + 1] == 80  # "CPU:"
            status[line] = LOST_EVENTS if lost else NO_TIME
            line += 1
            continue
        i += 2
        while i < end and buffer[i] == 32:
            i += 1
        if end - i > 4 and buffer[i] == 116 and buffer[i + 3] == 58:  # "tcp:"
            i += 4
        name = i
        while i < end and buffer[i] != 58:
            i += 1
        kind = 0
        if _is(buffer, name, i, PROBE):
            kind = 1
        elif _is(buffer, name, i, STATE_SET):
            kind = 2
        elif _is(buffer, name, i, RESENT):
            kind = 3
        if kind == 0:
            # Another event of the same trace, or a line of the tracer that names none.
            status[line] = SKIPPED if i < end else NOT_THIS_FORMAT
            line += 1
            continue
        i += 1
        bad = 0
        local = np.int64(0)
        remote = np.int64(0)
        local6 = np.int64(0)
        remote6 = np.int64(0)
        sport = np.int64(-1)
        dport = np.int64(-1)
        una = np.int64(-1)
        window = np.int64(-1)
        srtt = np.int64(-1)
        length = np.int64(0)
        new_state = np.int64(-1)
        while i < end:
            while i < end and buffer[i] == 32:
                i += 1
            key = i
            while i < end and buffer[i] != 61 and buffer[i] != 32:  # "="
                i += 1
            if i >= end or buffer[i] == 32:
                continue
            size = i - key
            i += 1
            value = i
            while i < end and buffer[i] != 32:
                i += 1
            a = buffer[key]
            b = buffer[key + 1] if size > 1 else np.uint8(0)
            got = np.int64(0)
            if size == 3 and a == 115 and b == 114:  # src
                colon = _last_colon(buffer, value, i)
                local = _address(buffer, value, colon)
                sport = got = decimal(buffer, colon + 1, i)
            elif size == 4 and a == 100 and b == 101:  # dest
                colon = _last_colon(buffer, value, i)
                remote = _address(buffer, value, colon)
                dport = got = decimal(buffer, colon + 1, i)
            elif size == 7 and b == 110 and buffer[key + 4] == 117:  # snd_una
                una = got = hexadecimal(buffer, value, i)
            elif size == 8 and b == 110 and buffer[key + 4] == 99:  # snd_cwnd
                window = got = decimal(buffer, value, i)
            elif size == 4 and a == 115 and b == 114:  # srtt
                srtt = got = decimal(buffer, value, i)
                if srtt >= 0 and una >= 0 and window >= 0 and sport >= 0 and dport >= 0:
                    break  # Nothing that is needed comes after it.
            elif (size == 8 and a == 100 and b == 97) or (size == 6 and a == 108 and b == 101):
                length = got = decimal(buffer, value, i)  # data_len, length
            elif size == 5 and b == 112 and buffer[key + 2] == 111:  # sport, dport
                got = decimal(buffer, value, i)
                if a == 115:
                    sport = got
                else:
                    dport = got
            elif size == 5 and b == 97:  # saddr, daddr
                if a == 115:
                    local = _address(buffer, value, i)
                else:
                    remote = _address(buffer, value, i)
            elif size == 7 and b == 97 and buffer[key + 6] == 54:  # saddrv6, daddrv6
                if a == 115:
                    local6 = _address(buffer, value, i)
                else:
                    remote6 = _address(buffer, value, i)
            elif size == 10 and a == 99 and b == 111:  # cong_state
                new_state = got = decimal(buffer, value, i)
            if got < 0:
                bad = NOT_A_NUMBER
                break
        if local6 != 0:
            local = local6
        if remote6 != 0:
            remote = remote6
        if bad == 0:
            missing = sport < 0 or dport < 0 or local == 0 or remote == 0
            missing = missing or (kind == 1 and una < 0) or (kind == 2 and new_state < 0)
            if missing:
                bad = TOO_FEW
            elif sport > 65535 or dport > 65535 or new_state > 255:
                bad = TOO_LARGE
        if bad != 0:
            status[line] = bad
            line += 1
            continue
        s = find_socket(table, keys, count, local, remote, (sport << 16) | dport)
        if s < 0:
            return line, n, True
        state = states[s]
        line_time[line] = now
        last = state[S_LAST_TIME]
        if last < 0:
            state[S_FIRST] = now
        elif now < last:
            state[S_BACK] = max(state[S_BACK], 0) + 1
        if now == last:
            digest = np.int64(0)
            for j in range(start, end):
                digest = (digest * 1099511628211) ^ np.int64(buffer[j])
            if digest == state[S_LAST_LINE]:
                status[line] = SKIPPED
                line += 1
                continue
            state[S_LAST_LINE] = digest
        else:
            state[S_LAST_LINE] = -1
        state[S_LAST_TIME] = now
        status[line] = EVENT
        if kind == 2:
            state[S_STATE] = new_state
            out_socket[n] = s
            out_variable[n] = CA_STATE
            out_time[n] = now
            out_value[n] = new_state
            n += 1
        elif kind == 3:
            out_socket[n] = s
            out_variable[n] = RETRANSMIT
            out_time[n] = now
            out_value[n] = 1
            n += 1
        else:
            state[S_RECEIVED] = max(state[S_RECEIVED], 0) + length
            una &= 0xFFFFFFFF
            if state[S_STATE] < 0:
                state[S_STATE] = 0
                out_socket[n] = s
                out_variable[n] = CA_STATE
                out_time[n] = now
                out_value[n] = 0
                n += 1
            if state[S_TIME] < 0:
                state[S_ACK] = 0
                state[S_UNA] = una
                if srtt > 0:
                    state[S_SRTT] = srtt
                    out_socket[n] = s
                    out_variable[n] = SRTT
                    out_time[n] = now
                    out_value[n] = srtt
                    n += 1
            else:
                step = (una - state[S_UNA]) & 0xFFFFFFFF
                advanced = step > 0 and step < 0x80000000
                if advanced:
                    state[S_UNA] = una
                    state[S_ACK] += step
                    out_socket[n] = s
                    out_variable[n] = ACK
                    out_time[n] = state[S_TIME]
                    out_value[n] = state[S_ACK]
                    n += 1
                if srtt > 0 and (advanced or srtt != state[S_SRTT]):
                    state[S_SRTT] = srtt
                    out_socket[n] = s
                    out_variable[n] = SRTT
                    out_time[n] = state[S_TIME]
                    out_value[n] = srtt
                    n += 1
            state[S_TIME] = now
            if window > 0 and window != state[S_WINDOW]:
                state[S_WINDOW] = window
                out_socket[n] = s
                out_variable[n] = CWND
                out_time[n] = now
                out_value[n] = window
                n += 1
        line += 1
    return line, n, False
