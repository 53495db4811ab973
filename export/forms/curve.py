"""Defines an odd, rising function as a table of integers, which tables and networks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from export.fixed import INT32_MAX
from export.ir import Ints
from export.reading import Malformed, integer, integers

MAX_ENTRIES = 1 << 17
_KEYS = {"places", "q", "mul", "down", "frac", "entries"}


@dataclass(frozen=True)
class Curve:
    """Entries of ``f`` at equal steps from 0 upwards; ``f(-x) = -f(x)``.

    The position in the table is ``(|x| * mul + half) >> down``, of which the last ``frac`` bits
    lie between two entries: with ``frac`` 0 the nearest entry is the answer, else a straight line
    joins the two. A multiplication instead of a shift lets any number of entries cover any range,
    and no target needs a division.

    Attributes
    ----------
    places : int
        Fractional bits of ``x``.
    q : int
        Fractional bits of the entries.
    mul, down, frac : int
    entries : tuple of int
        From 0 upwards, never falling; beyond the last one the function stays.
    """

    places: int
    q: int
    mul: int
    down: int
    frac: int
    entries: tuple[int, ...]

    @property
    def limit(self) -> int:
        """Smallest ``|x|`` that is answered by the last entry."""
        end = (len(self.entries) - 1) << (self.frac + self.down)
        return -((self.half - end) // self.mul)

    @property
    def half(self) -> int:
        """Half a unit of the position, before it is shifted down."""
        return 1 << (self.down - 1)

    @property
    def half_step(self) -> int:
        """Half of what the line between two entries is shifted down by."""
        return (1 << self.frac) >> 1

    @cached_property
    def _array(self) -> Ints:
        return np.array(self.entries, dtype=np.int64)

    def at(self, x: Ints) -> Ints:
        """``f`` of integers of any shape with ``places`` fractional bits, in Q``q``."""
        limit, table = self.limit, self._array
        size = np.minimum(np.abs(x), limit - 1)
        position = (size * self.mul + self.half) >> self.down
        i, rest = position >> self.frac, position & ((1 << self.frac) - 1)
        line = table[i] + (((table[i + 1] - table[i]) * rest + self.half_step) >> self.frac)
        found = np.where(np.abs(x) >= limit, table[-1], line)
        return np.asarray(np.where(x < 0, -found, found))

    def sigmoid(self, x: Ints) -> Ints:
        """Logistic function in Q``q`` of integers with one fractional bit less than ``places``.

        ``sigmoid(x) = (1 + tanh(x / 2)) / 2``, and ``x / 2`` with one bit more is ``x`` itself.
        """
        return np.asarray(((1 << self.q) + self.at(x)) >> 1)

    def tanh(self, x: Ints) -> Ints:
        """Hyperbolic tangent in Q``q`` of integers with one fractional bit less than ``places``."""
        return self.at(2 * x)


def curve_body(curve: Curve) -> dict[str, Any]:
    """A curve as a document has it."""
    return {
        "places": curve.places,
        "q": curve.q,
        "mul": curve.mul,
        "down": curve.down,
        "frac": curve.frac,
        "entries": list(curve.entries),
    }


def read_curve(given: Any, where: str) -> Curve:
    """A curve from a document; whatever could overflow or fall is Malformed."""
    if not isinstance(given, Mapping) or set(given) != _KEYS:
        raise Malformed(f"{where}: an object with {', '.join(sorted(_KEYS))} was expected")
    entries = integers(given["entries"], f"{where}.entries", 0, 1 << 30)
    if not 2 <= len(entries) <= MAX_ENTRIES:
        raise Malformed(f"{where}.entries: 2 to {MAX_ENTRIES} were expected")
    if entries[0] or any(a > b for a, b in pairwise(entries)):
        raise Malformed(f"{where}.entries: from 0 upwards and never falling was expected")
    curve = Curve(
        integer(given["places"], f"{where}.places", 0, 31),
        integer(given["q"], f"{where}.q", 1, 30),
        integer(given["mul"], f"{where}.mul", 1, INT32_MAX),
        integer(given["down"], f"{where}.down", 1, 61),
        integer(given["frac"], f"{where}.frac", 0, 20),
        entries,
    )
    if not 1 <= curve.limit <= 1 << 32 or curve.limit * curve.mul + curve.half >= 1 << 63:
        raise Malformed(f"{where}: the position in the table could overflow")
    return curve
