"""Logarithm, exponential and square root of integers: tables, lines in between, shifts."""

from __future__ import annotations

import numpy as np

from export.exp_table import exp2_negative, exp2_table
from export.ir import Ints

PLACES = 24
"""Fractional bits of a logarithm, and of what an exponential is given."""
LN2 = round(np.log(2.0) * 2**PLACES)
LOG2E = round(2**30 / np.log(2.0))
ENTRY_BITS = 8
"""The tables have so many bits of steps: a line between two entries errs by 2e-6 at most."""
MANTISSA = 30


def log_table() -> Ints:
    """``ln(1 + i / 256)`` for ``i`` in 0..256, in units of ``2**-24``."""
    steps = np.arange((1 << ENTRY_BITS) + 1) / (1 << ENTRY_BITS)
    return np.asarray(np.floor(np.log1p(steps) * 2**PLACES + 0.5), dtype=np.int64)


def exp_table() -> Ints:
    """As :func:`export.exp_table.exp2_table`."""
    return np.array(exp2_table(ENTRY_BITS), dtype=np.int64)


def log(x: Ints, table: Ints) -> Ints:
    """Natural logarithm in units of ``2**-24`` of integers in 1..2^62; others count as 1."""
    x = np.maximum(x, 1)
    whole = np.zeros_like(x)
    rest = x.copy()
    for bits in (32, 16, 8, 4, 2, 1):
        large = rest >= 1 << bits
        whole += np.where(large, bits, 0)
        rest = np.where(large, rest >> bits, rest)
    up, down = np.maximum(MANTISSA - whole, 0), np.maximum(whole - MANTISSA, 0)
    mantissa = ((x << up) >> down) - (1 << MANTISSA)
    low = MANTISSA - ENTRY_BITS
    i, part = mantissa >> low, mantissa & ((1 << low) - 1)
    line = table[i] + (((table[i + 1] - table[i]) * part) >> low)
    return np.asarray(whole * LN2 + line)


def exp(x: Ints, table: Ints) -> Ints:
    """``e**x`` in units of ``2**-26``; ``x`` has 24 fractional bits, and counts as 0 above it."""
    halvings = (np.minimum(np.maximum(-x, 0), (1 << 31) - 1) * LOG2E) >> MANTISSA
    return exp2_negative(halvings, PLACES, table)


def root(x: Ints) -> Ints:
    """Square root, rounded down, of integers below 2^62; of negative ones 0."""
    x = np.maximum(x, 0)
    found = np.floor(np.sqrt(x.astype(np.float64))).astype(np.int64)
    found = np.where(found * found > x, found - 1, found)
    return np.where((found + 1) * (found + 1) <= x, found + 1, found)
