"""The compact probe log (data/lab/README.md): differences per subflow, for one sender's connection.

The raw RTT of a line belongs to the subflow's previous ACK line, as in the probe's CSV.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numba import njit

from data.formats.base import (
    ACK,
    AFTER_DAMAGE,
    CA_STATE,
    CWND,
    EVENT,
    NEGATIVE,
    NO_HEADER,
    NOT_A_NUMBER,
    RETRANSMIT,
    RTT,
    SKIPPED,
    SRTT,
    TOO_FEW,
    TOO_LARGE,
    TOO_MANY,
    Batch,
    Lines,
    Options,
    Socket,
)
from data.formats.scan import Output, signed

DESCRIPTION = "the lab's compact probe log (#cczoo-klog 1)"
MAGIC = b"#cczoo-klog "
COLUMNS = b"#columns dt_us,sf,ack,rtt_us,cwnd,srtt_us"

(S_TIME, S_ACK, S_HIGH, S_RTT, S_CWND, S_SRTT, S_STATE, S_SHOWN_CWND, S_SHOWN_SRTT, S_SEEN,
 S_FIRST_RTT, S_ADVANCED) = range(12)  # fmt: skip
MOST_SUBFLOWS = 64
MOST_EVENTS = 5
UNREADABLE = 2
"""The clock's state after a header that can't be read; 1 after a damaged line."""
LIMIT = 1 << 60
"""Sums of differences beyond this come from a damaged file; they must not overflow."""


def sniff(head: bytes) -> int:
    """Recognise the first line."""
    return 100 if head.startswith(MAGIC) else 0


def reader(options: Options) -> KlogReader:
    """Make a reader of one file."""
    return KlogReader(options)


class KlogReader:
    """See ``data.formats.base.Reader``."""

    def __init__(self, options: Options) -> None:
        self.backwards = 0
        self._meta: dict[str, Any] = {}
        self._state = np.zeros((MOST_SUBFLOWS, 12), np.int64)
        self._state[:, (S_TIME, S_STATE)] = -1
        self._clock = np.zeros(2, np.int64)

    def parse(self, lines: Lines) -> Batch:
        """Parse lines; after a damaged one nothing can be trusted any more."""
        out = Output(len(lines.starts), MOST_EVENTS)
        line, events = 0, 0
        while line < len(lines.starts):
            line, events = _parse(
                lines.buffer, lines.starts, lines.ends, line, events, self._clock, self._state,
                out.status, out.socket, out.variable, out.time_us, out.value,
            )  # fmt: skip
            if line < len(lines.starts):
                text = lines.buffer[lines.starts[line] : lines.ends[line]].tobytes()
                out.status[line] = self._header(text)
                line += 1
        return out.batch(events)._replace(line_time_us=None)

    def _header(self, text: bytes) -> int:
        known = True
        if text.startswith(b"#meta"):
            known = self._facts(text[5:])
        elif text.startswith(b"#columns"):
            known = text == COLUMNS
        elif text.startswith(MAGIC):
            known = text.split() == [*MAGIC.split(), b"1"]
        if known:
            return SKIPPED
        # Without the time it begins at, or with other columns, no line can be understood.
        self._clock[1] = UNREADABLE
        return NO_HEADER

    def _facts(self, text: bytes) -> bool:
        try:
            meta = json.loads(text)
            start = int(meta["t0_us"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return False
        if not 0 <= start < LIMIT:
            return False
        self._meta = meta
        self._clock[0] = start
        return True

    def again(self) -> None:
        """Never: the file has its order by construction."""

    def finish(self) -> None:
        """Nothing: every event is complete with its line."""

    def sockets(self) -> list[Socket]:
        """Subflows of the one connection, with what the meta line says of them."""
        token = _text(self._meta.get("token"))
        meta = {
            key: value
            for key in ("label", "dataset", "kernel", "cc")
            if (value := _text(self._meta.get(key))) is not None
        }
        subflows = self._meta.get("subflows")
        result = []
        seen = np.flatnonzero(self._state[:, S_SEEN])
        for number in range(int(seen[-1]) + 1 if len(seen) else 0):
            about = subflows.get(str(number), {}) if isinstance(subflows, dict) else {}
            first = int(self._state[number, S_FIRST_RTT])
            result.append(
                Socket(
                    connection=token or "1",
                    subflow=number,
                    sport=_port(about, "sport"),
                    dport=_port(about, "dport"),
                    token=token,
                    min_rtt_us=first if first > 0 else -1,
                    meta=meta,
                )
            )
        return result


def _text(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)


def _port(about: Any, name: str) -> int:
    value = about.get(name, -1) if isinstance(about, dict) else -1
    return value if isinstance(value, int) and 0 <= value < 65536 else -1


@njit(cache=True)
def _parse(  # type: ignore[no-untyped-def]
    buffer, starts, ends, line, n, clock, states,
    status, out_socket, out_variable, out_time, out_value,
):  # fmt: skip
    """Parse from ``line`` on; returns (line, events), early at a line that starts with #."""
    numbers = np.zeros(6, np.int64)
    while line < len(starts):
        start, end = starts[line], ends[line]
        if end == start:
            status[line] = SKIPPED
            line += 1
            continue
        if buffer[start] == 35:  # "#"
            return line, n
        if clock[1] != 0:
            status[line] = NO_HEADER if clock[1] == UNREADABLE else AFTER_DAMAGE
            line += 1
            continue
        # Fields: at most 6; field 1 may be a letter, kept as -1 (S) or -2 (R).
        count = 0
        bad = 0
        position = start
        while True:
            stop = position
            while stop < end and buffer[stop] != 44:
                stop += 1
            if count >= 6:
                bad = TOO_MANY
                break
            if count == 1 and stop == position + 1 and buffer[position] == 83:
                numbers[1] = -1
            elif count == 1 and stop == position + 1 and buffer[position] == 82:
                numbers[1] = -2
            else:
                value, good = signed(buffer, position, stop)
                if not good or (count < 2 and stop == position):
                    bad = NOT_A_NUMBER
                    break
                if count == 1 and value < 0:
                    bad = NEGATIVE
                    break
                numbers[count] = value
            count += 1
            position = stop + 1
            if stop >= end:
                break
        kind = numbers[1] if count > 1 else 0
        if bad == 0:
            wanted = 5 if kind == -1 else (3 if kind == -2 else 6)
            if count < wanted:
                bad = TOO_FEW
            elif count > wanted:
                bad = TOO_MANY
        if bad == 0:
            s = numbers[2] if kind < 0 else kind
            known = 0 <= s < len(states)
            states_fit = kind != -1 or (0 <= numbers[3] < 256 and 0 <= numbers[4] < 256)
            if not known or not states_fit or abs(clock[0] + numbers[0]) >= LIMIT:
                bad = TOO_LARGE
            elif kind >= 0:
                state = states[s]
                for i in range(4):
                    if abs(state[(S_ACK, S_RTT, S_CWND, S_SRTT)[i]] + numbers[2 + i]) >= LIMIT:
                        bad = TOO_LARGE
        if bad != 0:
            status[line] = bad
            clock[1] = 1
            line += 1
            continue
        clock[0] += numbers[0]
        now = clock[0]
        state = states[s]
        state[S_SEEN] = 1
        status[line] = EVENT
        if kind == -1:
            state[S_STATE] = numbers[4]
            out_socket[n] = s
            out_variable[n] = CA_STATE
            out_time[n] = now
            out_value[n] = numbers[4]
            n += 1
        elif kind == -2:
            out_socket[n] = s
            out_variable[n] = RETRANSMIT
            out_time[n] = now
            out_value[n] = 1
            n += 1
        else:
            state[S_ACK] += numbers[2]
            state[S_RTT] += numbers[3]
            state[S_CWND] += numbers[4]
            state[S_SRTT] += numbers[5]
            raw = state[S_RTT]
            if state[S_TIME] < 0:
                if raw > 0:
                    state[S_FIRST_RTT] = raw
            elif raw > 0 and (state[S_ADVANCED] != 0 or numbers[3] != 0):
                out_socket[n] = s
                out_variable[n] = RTT
                out_time[n] = state[S_TIME]
                out_value[n] = raw
                n += 1
            if raw == 0 and state[S_SRTT] > 0 and state[S_SRTT] != state[S_SHOWN_SRTT]:
                state[S_SHOWN_SRTT] = state[S_SRTT]
                out_socket[n] = s
                out_variable[n] = SRTT
                out_time[n] = now
                out_value[n] = state[S_SRTT]
                n += 1
            if state[S_STATE] < 0:
                # The sender's first state isn't logged: a subflow starts Open.
                state[S_STATE] = 0
                out_socket[n] = s
                out_variable[n] = CA_STATE
                out_time[n] = now
                out_value[n] = 0
                n += 1
            state[S_TIME] = now
            state[S_ADVANCED] = 0
            if state[S_ACK] > state[S_HIGH]:
                state[S_HIGH] = state[S_ACK]
                state[S_ADVANCED] = 1
                out_socket[n] = s
                out_variable[n] = ACK
                out_time[n] = now
                out_value[n] = state[S_HIGH]
                n += 1
            if state[S_CWND] > 0 and state[S_CWND] != state[S_SHOWN_CWND]:
                state[S_SHOWN_CWND] = state[S_CWND]
                out_socket[n] = s
                out_variable[n] = CWND
                out_time[n] = now
                out_value[n] = state[S_CWND]
                n += 1
        line += 1
    return line, n
