"""Compiled scanning of bytes, shared by the readers that must be fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

from data.formats.base import Batch, Lines

MAX_DIGITS = 18
"""Eighteen decimal digits always fit an int64; no field of a log has more."""

BAD, BIG, MINUS = -1, -2, -3
"""What ``decimal`` and ``hexadecimal`` answer for no digits, too many digits, a negative."""


@njit(cache=True)
def decimal(buffer, start, end):  # type: ignore[no-untyped-def]
    """Value of the decimal digits in ``buffer[start:end]``, or BAD, BIG, MINUS."""
    if end <= start:
        return np.int64(BAD)
    if buffer[start] == 45:  # "-"
        return np.int64(MINUS)
    value = np.int64(0)
    for i in range(start, end):
        digit = np.int64(buffer[i]) - 48
        if digit < 0 or digit > 9:
            return np.int64(BAD)
        value = value * 10 + digit
    if end - start > MAX_DIGITS:
        return np.int64(BIG)
    return value


@njit(cache=True)
def signed(buffer, start, end):  # type: ignore[no-untyped-def]
    """(value, ok) of an optional minus sign and decimal digits; an empty field is 0."""
    if end <= start:
        return np.int64(0), True
    negative = buffer[start] == 45
    if negative:
        start += 1
    value = decimal(buffer, start, end)
    if value < 0:
        return np.int64(0), False
    return (-value if negative else value), True


@njit(cache=True)
def hexadecimal(buffer, start, end):  # type: ignore[no-untyped-def]
    """Value of up to 15 hexadecimal digits (with or without 0x), or BAD, BIG."""
    if end - start > 2 and buffer[start] == 48 and (buffer[start + 1] | 32) == 120:
        start += 2
    if end <= start:
        return np.int64(BAD)
    value = np.int64(0)
    for i in range(start, end):
        byte = np.int64(buffer[i])
        if 48 <= byte <= 57:
            digit = byte - 48
        else:
            digit = (byte | 32) - 87
            if digit < 10 or digit > 15:
                return np.int64(BAD)
        value = value * 16 + digit
    if end - start > 15:
        return np.int64(BIG)
    return value


@njit(cache=True)
def seconds(buffer, start, end):  # type: ignore[no-untyped-def]
    """Microseconds of a time stamp in seconds ("12.345678912", cut to microseconds), or BAD."""
    value = np.int64(0)
    i = start
    while i < end:
        digit = np.int64(buffer[i]) - 48
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        i += 1
    # 12 digits of seconds are 30 000 years and still fit in microseconds.
    if i == start or i - start > 12:
        return np.int64(BAD)
    scale = np.int64(1_000_000)
    value = value * scale
    if i == end:
        return value
    if buffer[i] != 46 or i + 1 == end:  # "."
        return np.int64(BAD)
    i += 1
    while i < end:
        digit = np.int64(buffer[i]) - 48
        if digit < 0 or digit > 9:
            return np.int64(BAD)
        scale //= 10
        value += digit * scale
        i += 1
    return value


@njit(cache=True)
def find_socket(table, keys, count, a, b, c):  # type: ignore[no-untyped-def]
    """Number of the socket with key (a, b, c), added if new; -1 when the table is full.

    ``table`` is an open-addressing hash table (size a power of two, -1 empty), ``keys`` one row
    per socket, ``count`` an array of one number.
    """
    mask = len(table) - 1
    mixed = a * np.int64(-7046029254386353131) ^ b * np.int64(-4417276706812531889) ^ c
    slot = (mixed ^ (mixed >> 29)) & mask
    while True:
        number = table[slot]
        if number < 0:
            break
        if keys[number, 0] == a and keys[number, 1] == b and keys[number, 2] == c:
            return number
        slot = (slot + 1) & mask
    number = count[0]
    if number >= len(keys):
        return np.int32(-1)
    table[slot] = number
    keys[number, 0] = a
    keys[number, 1] = b
    keys[number, 2] = c
    count[0] = number + 1
    return np.int32(number)


class SocketTable:
    """The hash table behind ``find_socket`` and a row of int64 state per socket.

    Parameters
    ----------
    width : int
        Numbers of state per socket, -1 at first.
    """

    def __init__(self, width: int) -> None:
        self.count = np.zeros(1, np.int64)
        self.keys = np.zeros((64, 3), np.int64)
        self.state = np.full((64, width), -1, np.int64)
        self.table = np.full(256, -1, np.int32)

    def __len__(self) -> int:
        return int(self.count[0])

    def grow(self) -> None:
        """Double the room; the keys are hashed anew."""
        old = len(self)
        self.keys = np.vstack([self.keys, np.zeros_like(self.keys)])
        self.state = np.vstack([self.state, np.full_like(self.state, -1)])
        self.table = np.full(len(self.table) * 2, -1, np.int32)
        again = np.zeros(1, np.int64)
        _rehash(self.table, self.keys, again, old)

    def rows(self) -> Iterator[tuple[list[int], list[int]]]:
        """Key and state of each socket, in the order of their numbers."""
        size = len(self)
        return zip(self.keys[:size].tolist(), self.state[:size].tolist(), strict=True)

    def total(self, column: int) -> int:
        """Sum of a state over all sockets, -1 taken for 0."""
        return int(np.maximum(self.state[: len(self), column], 0).sum())


@njit(cache=True)
def _rehash(table, keys, count, old):  # type: ignore[no-untyped-def]
    for i in range(old):
        find_socket(table, keys, count, keys[i, 0], keys[i, 1], keys[i, 2])


class Output:
    """Room for what a compiled parser finds in some lines.

    Parameters
    ----------
    lines : int
        Number of lines.
    per_line : int
        The most events one line can give.
    """

    def __init__(self, lines: int, per_line: int) -> None:
        room = lines * per_line
        self.status = np.zeros(lines, np.uint8)
        self.line_time_us = np.full(lines, -1, np.int64)
        self.socket = np.empty(room, np.int32)
        self.variable = np.empty(room, np.int8)
        self.time_us = np.empty(room, np.int64)
        self.value = np.empty(room, np.int64)

    def batch(self, events: int) -> Batch:
        """Copy what was filled, so that the unused room can go."""
        return Batch(
            self.status,
            self.socket[:events].copy(),
            self.variable[:events].copy(),
            self.time_us[:events].copy(),
            self.value[:events].copy(),
            self.line_time_us,
        )


def run_parser(parse: Callable[..., Any], lines: Lines, table: SocketTable, out: Output) -> int:
    """Run a compiled parser over all lines, making room for sockets as they come.

    ``parse(buffer, starts, ends, line, events, table, keys, states, count, status, line_time,
    socket, variable, time, value)`` returns (line, events, whether the table is full).

    Returns
    -------
    int
        The number of events found.
    """
    line, events = 0, 0
    while line < len(lines.starts):
        line, events, full = parse(
            lines.buffer, lines.starts, lines.ends, line, events,
            table.table, table.keys, table.state, table.count,
            out.status, out.line_time_us, out.socket, out.variable, out.time_us, out.value,
        )  # fmt: skip
        if full:
            table.grow()
    return int(events)
