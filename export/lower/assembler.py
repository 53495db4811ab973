"""Writes the steps of a program one by one, and finds places for their numbers at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from export.ir import Ints
from export.lower.prepare import NotLowerable
from export.program.kinds import KINDS
from export.program.step import BITS, Step

Floats = NDArray[np.float64]
WIDE = 44
"""Bits of squares and their sums: a root takes half of them."""
MOST_PLACES = 24
FACTOR_BITS = 29
"""Bits of what a number of 31 bits is multiplied by."""


@dataclass(frozen=True)
class Tensor:
    """Numbers that the steps so far have written.

    Attributes
    ----------
    buffer, start : int
        Which run of memory they are in, and where in it.
    shape : tuple of int
    q : int64 array [n]
        Fractional bits of each number; negative ones stand for multiples of a power of two.
    bits : int
    """

    buffer: int
    start: int
    shape: tuple[int, ...]
    q: Ints
    bits: int = BITS

    @property
    def n(self) -> int:
        """Numbers."""
        return math.prod(self.shape)

    def shaped(self, shape: tuple[int, ...]) -> Tensor:
        """The same numbers in another shape."""
        return replace(self, shape=shape)


class Assembler:
    """Steps whose operands are tensors.

    Parameters
    ----------
    features : int
        Numbers of an observation, which come first in memory.
    """

    def __init__(self, features: int) -> None:
        self.sizes = [features]
        self.kept = {0}
        self.steps: list[tuple[Step, dict[str, tuple[int, int]], tuple[int, int]]] = []

    def buffer(self, n: int, keep: bool = False) -> int:
        """A run of memory; one that is kept is nobody else's at any time."""
        self.sizes.append(n)
        if keep:
            self.kept.add(len(self.sizes) - 1)
        return len(self.sizes) - 1

    def emit(
        self,
        kind: str,
        shape: tuple[int, ...],
        q: Ints | int,
        operands: Mapping[str, Tensor],
        numbers: Mapping[str, int] | None = None,
        tables: Mapping[str, Ints | int] | None = None,
        into: tuple[int, int] | None = None,
    ) -> Tensor:
        """Write a step; its results as a tensor, by default in a run of their own."""
        n, given = math.prod(shape), dict(numbers or {})
        where = (self.buffer(n), 0) if into is None else into
        bits = given.get("bits", BITS)
        if "bits" in KINDS[kind].numbers:
            given["bits"] = bits
        free = KINDS[kind].tables
        found = {
            name: _table(value, n if free[name] is None else 0)
            for name, value in (tables or {}).items()
        }
        step = Step(kind, 0, n, given, found)
        places = {name: (one.buffer, one.start) for name, one in operands.items()}
        self.steps.append((step, places, where))
        fractions = np.broadcast_to(np.asarray(q, dtype=np.int64), n).copy()
        return Tensor(where[0], where[1], shape, fractions, bits)

    def line(
        self,
        x: Tensor,
        factor: Floats | float,
        added: Floats | float,
        q: Ints | int,
        bits: int = BITS,
        into: tuple[int, int] | None = None,
    ) -> Tensor:
        """``factor * x + added`` with ``q`` fractional bits."""
        wanted = np.broadcast_to(np.asarray(q, dtype=np.int64), x.n)
        scaled = np.broadcast_to(np.asarray(factor, np.float64), x.n) * 2.0 ** (wanted - x.q)
        most = FACTOR_BITS if x.bits == BITS else 60 - x.bits
        size = np.where(scaled == 0, 1.0, np.abs(scaled))
        mantissa, exponent = np.frexp(size)
        exact = mantissa == 0.5
        # What is added must fit as well, shifted by as much.
        shift = np.clip(np.where(exact, 1 - exponent, most - exponent), 0, 60 - bits)
        mul = np.floor(scaled * 2.0**shift + 0.5)
        given = np.broadcast_to(np.asarray(added, np.float64), x.n)
        add = np.floor(given * 2.0 ** (wanted + shift) + 0.5)
        if max(np.abs(mul).max(), np.abs(add).max()) >= 2.0**61:
            raise NotLowerable("a constant is too large for integers of 64 bits")
        add = add + np.where(shift > 0, 2.0 ** (shift - 1.0), 0.0)
        tables = {"mul": mul.astype(np.int64), "add": add.astype(np.int64), "shift": shift}
        return self.emit("line", x.shape, wanted, {"a": x}, {"bits": bits}, tables, into)

    def rescaled(
        self, x: Tensor, q: Ints | int, bits: int = BITS, into: tuple[int, int] | None = None
    ) -> Tensor:
        """The same numbers with other fractional bits."""
        wanted = np.broadcast_to(np.asarray(q, dtype=np.int64), x.n)
        if into is None and bits == x.bits and (wanted == x.q).all():
            return x
        return self.line(x, 1.0, 0.0, wanted, bits, into)

    def even(self, x: Tensor, q: int | None = None) -> Tensor:
        """The same numbers with the same fractional bits each, as many as the coarsest has."""
        return self.rescaled(x, int(x.q.min()) if q is None else q, x.bits)

    def moved(self, x: Tensor, places: Ints) -> Tensor:
        """Numbers of a tensor at places [any shape]; 0 where a place is negative."""
        flat = places.ravel()
        if flat.size and flat[0] >= 0 and (flat == flat[0] + np.arange(flat.size)).all():
            start = int(flat[0])
            q = x.q[start : start + flat.size]
            return replace(x, start=x.start + start, shape=places.shape, q=q)
        q = np.where(flat < 0, x.q.min(), x.q[np.maximum(flat, 0)])
        numbers = {"of": x.n}
        moved = self.emit("take", places.shape, q, {"a": x}, numbers, {"map": flat})
        return replace(moved, bits=x.bits)

    def finished(self, results: list[Tensor]) -> tuple[tuple[Step, ...], int, list[int]]:
        """Steps with their places, the size of the memory, and where the results are."""
        ends = len(self.steps)
        first, last = dict.fromkeys(self.kept, -1), dict.fromkeys(self.kept, ends)
        for number, (_, operands, (buffer, _)) in enumerate(self.steps):
            first.setdefault(buffer, number)
            for used in (buffer, *(at for at, _ in operands.values())):
                last[used] = max(last.get(used, 0), number)
        for one in results:
            last[one.buffer] = ends
        places: dict[int, int] = {}
        for buffer in sorted(first, key=lambda b: (first[b], b)):
            taken = sorted(
                (places[other], places[other] + self.sizes[other])
                for other in places
                if first[other] <= last[buffer] and first[buffer] <= last[other]
            )
            at = 0
            for start, end in taken:
                if at + self.sizes[buffer] <= start:
                    break
                at = max(at, end)
            places[buffer] = at
        steps = tuple(
            replace(
                step,
                to=places[buffer] + offset,
                numbers={
                    **step.numbers,
                    **{name: places[at] + start for name, (at, start) in operands.items()},
                },
            )
            for step, operands, (buffer, offset) in self.steps
        )
        size = max(places[b] + self.sizes[b] for b in places)
        return steps, size, [places[one.buffer] + one.start for one in results]


def _table(value: Ints | int, n: int) -> Ints:
    """A table; of ``n`` constants that are all alike, one."""
    found = np.asarray(value, dtype=np.int64).ravel()
    alike = len(found) == n > 1 and (found == found[0]).all()
    return np.array([found[0]], dtype=np.int64) if alike else np.atleast_1d(found)
