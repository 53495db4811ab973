"""Computes ``2**-t`` in integers: a shift for the whole part, an interpolated table for the rest.

The exponential is what kept the SVM out of the paper's kernel module (smartsbd.txt §4). Base 2
costs nothing: ``exp(-gamma * d**2)`` is ``2**-(gamma * log2(e) * d**2)``, and the factor goes into
the scale of the coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from export.ir import Ints

ONE_BITS = 26
"""The table's values are in units of ``2**-26``; beyond ``t = 26`` nothing is left of them."""
REST_BITS = 16
"""Bits of ``t`` below the table's step; the interpolation is linear in them."""


def exp2_table(bits: int) -> tuple[int, ...]:
    """``2**-(i / 2**bits)`` for ``i`` in ``0..2**bits``, rounded to units of ``2**-26``.

    With 10 bits, before the shift, an interpolated value is at most 1.1e-7 of itself too large: the
    chord ``(ln 2 / 2**10)**2 / 8``, 1.5 roundings of ``2**-25`` and a cut of ``ln 2 / 2**26``.
    """
    steps = np.arange((1 << bits) + 1) / (1 << bits)
    return tuple(int(v) for v in np.floor(np.exp2(ONE_BITS - steps) + 0.5))


def table_bits(table: Sequence[int] | Ints) -> int:
    """Binary logarithm of the number of the table's steps."""
    return (len(table) - 1).bit_length() - 1


def exp2_negative(t: Ints, places: int, table: Ints) -> Ints:
    """``2**-(t / 2**places)`` in units of ``2**-26``.

    Parameters
    ----------
    t : int64 array
        Not negative.
    places : int
        At least the table's bits and :data:`REST_BITS` together.
    table : int64 array [2**bits + 1]
        Falling.

    Returns
    -------
    int64 array
        In the shape of ``t``.
    """
    bits = table_bits(table)
    low = places - bits - REST_BITS
    whole = t >> places
    index = (t >> (places - bits)) & ((1 << bits) - 1)
    rest = (t >> low) & ((1 << REST_BITS) - 1)
    start = table[index]
    value = start - (((start - table[index + 1]) * rest) >> REST_BITS)
    return np.asarray(np.where(whole > ONE_BITS, 0, value >> np.minimum(whole, ONE_BITS + 1)))
