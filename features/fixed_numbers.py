"""Roots, quotients and logarithms of whole numbers, as exported code computes them.

Every function here exists twice: in Python, where it is meant to be read, and in C
(``export/templates/sbd/plus_numbers.j2``). Both give the same integer for every argument that
:mod:`features.fixed_plus` can produce, and no step needs more than 64 bits.
"""

from __future__ import annotations

import math

Q16 = 1 << 16
QUOTIENT_BITS = 45
"""Longer denominators are shortened to this, so that ``numerator * 65536`` keeps within 64 bits."""
QUOTIENT_MOST = 4
"""Quotients are cut at this: no feature has a larger range."""
ROOT_BITS = 10
"""Binary places that roots of sums of squares keep, twice over."""
LN2_Q16 = 45426
"""ln 2 in 1/65536."""


def quotient(numerator: int, denominator: int) -> int:
    """``numerator / denominator`` in 1/65536, half away from zero, within ±4.

    Zero if the denominator is: what isn't defined counts as no likeness and no difference.
    """
    if denominator == 0:
        return 0
    size = abs(numerator)
    shift = max(0, denominator.bit_length() - QUOTIENT_BITS)
    size, denominator = size >> shift, denominator >> shift
    if size >= QUOTIENT_MOST * denominator:
        found = QUOTIENT_MOST * Q16
    else:
        found = ((size << 16) + (denominator >> 1)) // denominator
    return -found if numerator < 0 else found


def correlation(covariance: int, first: int, second: int) -> int:
    """``covariance / sqrt(first * second)`` in 1/65536, within ±1.

    Parameters
    ----------
    covariance, first, second : int
        Sums of products and of squares of deviations, below 2^52; 0 if either of the last is.
    """
    root = math.isqrt(first << ROOT_BITS) * math.isqrt(second << ROOT_BITS)
    return max(-Q16, min(Q16, quotient(covariance << ROOT_BITS, root)))


def log2(value: int) -> int:
    """Binary logarithm of a number from 1 to 2^62 in 1/65536, rounded down bit by bit."""
    whole = value.bit_length() - 1
    mantissa = value << 31 - whole if whole <= 31 else value >> whole - 31
    found = whole
    for _ in range(16):
        mantissa = mantissa * mantissa >> 31
        bit = mantissa >> 32
        mantissa >>= bit
        found = found << 1 | bit
    return found


def log_ratio(first: int, second: int, floor: int) -> int:
    """``|ln(first / second)|`` in 1/65536, at most 4; both raised to ``floor`` and to 1 first."""
    one, other = (log2(max(value, floor, 1)) for value in (first, second))
    return min((abs(one - other) * LN2_Q16 + Q16 // 2) >> 16, QUOTIENT_MOST * Q16)
