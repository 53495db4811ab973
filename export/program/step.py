"""Defines a step of a program of integers, and what any kind of step must say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.forms.curve import Curve
from export.ir import Ints

Floats = NDArray[np.float64]
MOST = 2.0**62
"""Nothing on the way to an answer is larger."""
BITS = 31
"""Bits of a number between steps, but for a few sums of squares, which have more."""


@dataclass(frozen=True)
class Step:
    """What some numbers of a program's memory become, from others.

    Attributes
    ----------
    kind : str
        Of :data:`export.program.kinds.KINDS`.
    to, n : int
        Where the results go, and how many there are.
    numbers : dict of str to int
        By the kind: where operands are, shifts and the like.
    tables : dict of str to int64 array [n] or [1]
        Constants, one for each result or one for all.
    """

    kind: str
    to: int
    n: int
    numbers: Mapping[str, int]
    tables: Mapping[str, Ints]

    def operand(self, memory: Ints, name: str = "a", k: int = 1) -> Ints:
        """An operand of ``n * k`` numbers, in memory [N, size]."""
        at = self.numbers[name]
        return memory[:, at : at + self.n * k]

    def clipped(self, found: Ints) -> Ints:
        """Within the bits that the results may have."""
        most = self.most
        return np.asarray(np.clip(found, -most, most))

    @property
    def most(self) -> int:
        """The largest result."""
        return (1 << self.numbers.get("bits", BITS)) - 1


@dataclass(frozen=True)
class Shared:
    """Tables that steps of one program share; those that nothing needs are empty.

    Attributes
    ----------
    curve : Curve or None
        tanh.
    log, exp : int64 array
        See :mod:`export.program.exponents`.
    """

    curve: Curve | None
    log: Ints
    exp: Ints


Length = Callable[[int, Mapping[str, int]], int]
Run = Callable[[Step, Ints, Shared], Ints]
Reach = Callable[[Step, Floats, Shared], Floats]


@dataclass(frozen=True)
class Kind:
    """A kind of step.

    Attributes
    ----------
    operands : dict of str to callable
        Name of a number that says where an operand is, and how many numbers that has, by ``n`` and
        the step's other numbers.
    numbers : dict of str to tuple of int
        Other numbers, and their bounds.
    tables : dict of str to callable or None
        Name of a table, and its length; None for one number or ``n``.
    run : callable
        Results [N, n] of memory [N, size].
    reach : callable
        Bounds of the results [n], of those of memory [size]: float64, without rounding that could
        matter; anything above `MOST` on the way is an error.
    """

    operands: Mapping[str, Length]
    numbers: Mapping[str, tuple[int, int]]
    tables: Mapping[str, Length | None]
    run: Run
    reach: Reach
