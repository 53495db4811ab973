"""Tabulates the hyperbolic tangent, and bounds how wrong the table is (nuwa.txt §IV.B, eq. 5)."""

from __future__ import annotations

import math

import numpy as np

from data.errors import UserError
from export.forms.curve import MAX_ENTRIES, Curve
from export.ir import Ints

STEEPEST = 1.0
MOST_BENT = 4 / (3 * math.sqrt(3))
"""Largest first and second derivative of tanh."""
MOST_TRIED = 1 << 24
"""Most inputs that are tried one by one; of more only the bound is stated."""
FRACTION = 12
_CHUNK = 1 << 20


def tanh_curve(places: int, q: int, entries: int, *, interpolate: bool = True) -> Curve:
    """Table of tanh from 0 to where it rounds to one, or as far as 32-bit inputs go.

    Parameters
    ----------
    places, q : int
        Fractional bits of input and output.
    entries : int
    interpolate : bool
        A line between entries, else the nearest entry.

    Returns
    -------
    Curve

    Raises
    ------
    UserError
        For sizes that 32-bit integers can't carry.
    """
    for name, given, low, high in (
        ("entries", entries, 2, MAX_ENTRIES), ("q", q, 1, 30), ("input_q", places, 0, 31),
    ):  # fmt: skip
        if not low <= given <= high:
            raise UserError(f"--set {name}={given}: {low} to {high} is possible")
    frac = FRACTION if interpolate else 0
    # A little beyond where rounding starts to give one, so that the last entry is surely one.
    end = min(math.atanh(1 - 0.99 * 2.0 ** -(q + 1)) * 2**places, 2.0**31 - 1)
    ratio = ((entries - 1) << frac) / end
    down = 30 - math.ceil(math.log2(ratio))
    if not 1 <= down <= 61:
        raise UserError(
            f"--set entries={entries}: not with {places} fractional bits of input: use fewer "
            "entries or more bits"
        )
    mul = round(ratio * 2**down)
    # Entries stand where the rounded ratio puts them, so rounding it costs no accuracy.
    step = 2.0 ** (frac + down) / mul / 2**places
    values = np.floor(np.tanh(np.arange(entries) * step) * 2**q + 0.5).astype(np.int64)
    return Curve(places, q, mul, down, frac, tuple(values.tolist()))


def bound(curve: Curve) -> float:
    """Bound of the absolute difference from tanh, over all inputs.

    Between entries a line errs by at most ``step**2 / 8 * max|f''|``, the nearest entry by
    ``step / 2 * max|f'|``; to this come the roundings of entry, position and answer, and behind
    the last entry what is missing to one.
    """
    step = 2.0 ** (curve.frac + curve.down) / curve.mul / 2**curve.places
    ulp = 2.0**-curve.q
    if curve.frac:
        between = step**2 / 8 * MOST_BENT + step * 2.0**-curve.frac / 2 * STEEPEST + ulp
    else:
        between = step / 2 * STEEPEST + ulp / 2
    return float(max(between, _tail(curve)))


def largest_error(curve: Curve) -> float:
    """Largest absolute difference from tanh over every input that 32 bits can hold.

    Raises
    ------
    ValueError
        When these are more than :data:`MOST_TRIED` before the table's end: see :func:`bound`.
    """
    if curve.limit > MOST_TRIED:
        raise ValueError(f"{curve.limit} inputs are too many to try")
    worst = _tail(curve)
    for start in range(0, curve.limit, _CHUNK):
        x: Ints = np.arange(start, min(start + _CHUNK, curve.limit), dtype=np.int64)
        meant = np.tanh(x / 2.0**curve.places)
        worst = max(worst, float(np.abs(curve.at(x) / 2.0**curve.q - meant).max()))
    return worst


def stated_error(curve: Curve) -> dict[str, float | int | bool]:
    """What a manifest states of a table: the largest error if it can be found, and the bound."""
    tried = curve.limit <= MOST_TRIED
    stated: dict[str, float | int | bool] = {
        "error_bound": bound(curve),
        "every_input_tried": tried,
        "inputs_tried": 2 * curve.limit - 1 if tried else 0,
    }
    return stated | ({"largest_error": largest_error(curve)} if tried else {})


def _tail(curve: Curve) -> float:
    """Error from the table's end on: tanh still rises from there to its value at 2**31."""
    last = curve.entries[-1] / 2.0**curve.q
    ends = (math.tanh(x / 2.0**curve.places) for x in (min(curve.limit, 2**31), 2**31))
    return max(abs(last - end) for end in ends)
