"""Gives support vectors fewer bits, and fits their weights again to make up for it."""

from __future__ import annotations

import dataclasses

import numpy as np

from data.errors import UserError
from export.exp_table import ONE_BITS, REST_BITS, exp2_table
from export.forms.rbf import Input, Rbf
from export.ir import Ints
from export.passes.refit import refitted

LEAST_TABLE_BITS = 6


def coarser(form: Rbf, bits: int, x: Ints) -> Rbf:
    """Coordinates of the vectors that fit ``bits`` bits, the sign included.

    Rounding each vector for itself turns hundreds of verdicts of a machine with a large C; the
    weights fitted anew on ``x`` (int64 array [N, d]) take nearly all of that back.

    Raises
    ------
    UserError
        When too few fractional bits remain for a distance.
    """
    vectors, weights, _ = form.arrays
    largest = int(np.maximum(vectors, -1 - vectors).max())
    drop = max(0, largest.bit_length() - (bits - 1))
    if not drop:
        return form
    places = form.places - drop
    table_bits = min(form.table_bits, 2 * places - REST_BITS)
    if table_bits < min(form.table_bits, LEAST_TABLE_BITS):
        raise UserError(f"--set bits={bits}: too few for these support vectors: try 16")
    most = (1 << (bits - 1)) - 1
    rounded = np.minimum((vectors + ((1 << drop) >> 1)) >> drop, most)
    other = dataclasses.replace(
        form,
        inputs=tuple(_coarser(one, drop) for one in form.inputs),
        places=places,
        table=form.table if table_bits == form.table_bits else exp2_table(table_bits),
        vectors=tuple(tuple(map(int, row)) for row in rounded),
    )
    return refitted(form, other, weights / 2.0 ** (form.shift - ONE_BITS), x)


def _coarser(one: Input, drop: int) -> Input:
    """The same coordinate with fewer fractional bits, still rounded to the nearest."""
    half = (1 << one.shift) >> 1
    return one._replace(
        multiplier=(one.multiplier + ((1 << drop) >> 1)) >> drop,
        offset=((one.offset - half) >> drop) + half,
    )
