"""Defines the form of a support vector machine: ``sum(weight * exp(-gamma * distance**2))``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from export.exp_table import ONE_BITS, REST_BITS, exp2_negative, table_bits
from export.fixed import INT32_MAX, INT32_MIN, limits
from export.ir import Ints, Verdicts, above_threshold, checked
from export.reading import Malformed, integer, integers, listed
from features.spec import Feature

BODY = frozenset({"inputs", "places", "table", "vectors", "weights", "bias", "shift"})
LIMIT = (1 << 27) - 1
"""Coordinates are clipped to this."""
MAX_INPUTS = 64
"""With :data:`LIMIT`, what keeps a squared distance below ``2**62``."""
MAX_VECTORS = 1 << 16
MAX_TABLE_BITS = 14
_CHUNK = 1 << 15
"""Kernels at a time: what a processor's cache holds."""


class Input(NamedTuple):
    """A coordinate: ``(x[feature] * multiplier + offset) >> shift``, clipped to :data:`LIMIT`."""

    feature: int
    multiplier: int
    offset: int
    shift: int


@dataclass(frozen=True)
class Rbf:
    """Weighted sum of ``2**-t`` over the support vectors, ``t`` the squared distance.

    Coordinates are scaled so that ``t`` needs no factor.

    Attributes
    ----------
    inputs : tuple of Input
        ``m`` coordinates.
    places : int
        Fractional bits of a coordinate; a squared distance has twice as many.
    table : tuple of int
        See :mod:`export.exp_table`.
    vectors : tuple of tuple of int
        ``n`` support vectors of ``m`` coordinates.
    weights : tuple of int
        Dual coefficients; ``sum(|weights|) * 2**26 + |bias|`` stays below ``2**63``.
    bias : int
    shift : int
        Fractional bits of the score.
    """

    kind: ClassVar[str] = "rbf"
    outputs: ClassVar[int] = 1
    limit: ClassVar[int] = LIMIT
    one_bits: ClassVar[int] = ONE_BITS
    rest_bits: ClassVar[int] = REST_BITS
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    inputs: tuple[Input, ...]
    places: int
    table: tuple[int, ...]
    vectors: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    bias: int
    shift: int

    @property
    def table_bits(self) -> int:
        """Binary logarithm of the number of the table's steps."""
        return table_bits(self.table)

    @property
    def coordinate_bits(self) -> int:
        """Width of the integers that hold the vectors' coordinates: 16 or 32."""
        vectors = self.arrays[0]
        return 16 if np.maximum(vectors, -1 - vectors).max() < 1 << 15 else 32

    @cached_property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """``vectors, weights, table`` as int64 arrays."""
        shape = (len(self.vectors), len(self.inputs))
        vectors = np.array(self.vectors, dtype=np.int64).reshape(shape)
        return vectors, np.array(self.weights, dtype=np.int64), np.array(self.table)

    def coordinates(self, x: Ints) -> Ints:
        """Coordinates of observations within 32 bits: int64 array [N, d] -> [N, m]."""
        column, multiplier, offset, shift = np.array(self.inputs, dtype=np.int64).T
        at = (x[:, column] * multiplier + offset) >> shift
        return np.asarray(np.clip(at, -LIMIT, LIMIT))

    def observations(self, coordinates: Ints, x: Ints) -> Ints:
        """Observations within 32 bits as near to coordinates (int64 array [N, m]) as can be.

        Features that no coordinate is computed from are kept from ``x`` (int64 array [N, d]).
        """
        x = x.copy()
        for j, one in enumerate(self.inputs):
            if one.multiplier:
                wanted = ((coordinates[:, j] << one.shift) - one.offset) // one.multiplier
                x[:, one.feature] = np.clip(wanted, INT32_MIN, INT32_MAX)
        return x

    def kernels(self, coordinates: Ints) -> Ints:
        """Kernel between coordinates and every vector, in ``2**-26``.

        Parameters
        ----------
        coordinates : int64 array [N, m]

        Returns
        -------
        int64 array [N, vectors]
        """
        vectors, _, table = self.arrays
        distance = np.zeros((len(coordinates), len(vectors)), dtype=np.int64)
        for j in range(len(self.inputs)):
            distance += (coordinates[:, j, None] - vectors[None, :, j]) ** 2
        return exp2_negative(distance, 2 * self.places, table)

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d])."""
        at = self.coordinates(checked(x, self.features))
        weights = self.arrays[1]
        rows = max(1, _CHUNK // len(weights))
        parts = [self.kernels(at[i : i + rows]) @ weights for i in range(0, len(at), rows)]
        scores = np.concatenate([np.zeros(0, dtype=np.int64), *parts]) + self.bias
        return above_threshold(scores, self.decision_threshold)


def body(form: Rbf) -> dict[str, Any]:
    """Coordinates, table, vectors and weights."""
    return {
        "inputs": [list(one) for one in form.inputs],
        "places": form.places,
        "table": list(form.table),
        "vectors": [list(vector) for vector in form.vectors],
        "weights": list(form.weights),
        "bias": form.bias,
        "shift": form.shift,
    }


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Rbf:
    """An RBF form from a document's parts."""
    if len(labels) != 2:
        raise Malformed("labels: two names were expected")
    rows = listed(document["inputs"], "inputs")
    if not 1 <= len(rows) <= MAX_INPUTS:
        raise Malformed(f"inputs: 1 to {MAX_INPUTS} were expected")
    inputs = tuple(_input(row, f"inputs[{j}]", len(features)) for j, row in enumerate(rows))
    table = integers(document["table"], "table", 0, 1 << ONE_BITS)
    bits = table_bits(table)
    if not 0 <= bits <= MAX_TABLE_BITS or len(table) != (1 << bits) + 1:
        raise Malformed(f"table: 2**bits + 1 values were expected, bits 0 to {MAX_TABLE_BITS}")
    if any(a < b for a, b in itertools.pairwise(table)):
        raise Malformed("table: falling values were expected")
    places = integer(document["places"], "places", (bits + REST_BITS + 1) // 2, 27)
    vectors = tuple(
        integers(row, f"vectors[{i}]", -LIMIT, LIMIT)
        for i, row in enumerate(listed(document["vectors"], "vectors"))
    )
    weights = integers(document["weights"], "weights", INT32_MIN + 1, INT32_MAX)
    if not 1 <= len(vectors) <= MAX_VECTORS or len(weights) != len(vectors):
        raise Malformed(f"vectors: 1 to {MAX_VECTORS}, each with a weight, were expected")
    if any(len(vector) != len(inputs) for vector in vectors):
        raise Malformed("vectors: one coordinate per input was expected")
    bias = integer(document["bias"], "bias", -(2**62), 2**62)
    shift = integer(document["shift"], "shift", 0, 62)
    if (sum(map(abs, weights)) << ONE_BITS) + abs(bias) >= 2**63:
        raise Malformed("weights: the sum could overflow 64 bits")
    return Rbf(
        features, labels, decision_threshold, inputs, places, table, vectors, weights, bias, shift
    )


def _input(row: Any, where: str, n_features: int) -> Input:
    if len(listed(row, where)) != 4:
        raise Malformed(f"{where}: [feature, multiplier, offset, shift] was expected")
    one = Input(
        integer(row[0], where, 0, n_features - 1),
        integer(row[1], where, INT32_MIN + 1, INT32_MAX),
        integer(row[2], where, -(2**62) + 1, 2**62 - 1),
        integer(row[3], where, 0, 34),
    )
    if abs(one.multiplier) * 2**31 + abs(one.offset) >= 2**63:
        raise Malformed(f"{where}: the coordinate could overflow 64 bits")
    return one


def boundary_vectors(form: Rbf, rng: np.random.Generator) -> dict[str, Ints]:
    """Observations on which arithmetic can go wrong.

    They lie on both sides of the decision boundary as near to each other as integers are, on the
    support vectors themselves, at the distance at which the kernel ends, and where coordinates are
    clipped.
    """
    some = _some_vectors(form, rng, 200)
    return {
        "vectors": some,
        "boundary": _boundary(form, np.concatenate([some, timed(form, rng, 400)]), rng),
        "reach": _at_reach(form, rng),
        "saturation": _at_limits(form, rng),
    }


def timed(form: Rbf, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from the lines between pairs of support vectors."""
    a, b = _some_vectors(form, rng, rows), _some_vectors(form, rng, rows)
    low, high = limits(form.features)
    between = a + np.floor((b - a) * rng.random((rows, 1))).astype(np.int64)
    return np.clip(between, low, high)


def _some_vectors(form: Rbf, rng: np.random.Generator, rows: int) -> Ints:
    vectors = form.arrays[0]
    low, high = limits(form.features)
    rest = rng.integers(low, high, (rows, len(low)), endpoint=True)
    return form.observations(vectors[rng.integers(len(vectors), size=rows)], rest)


def _boundary(form: Rbf, x: Ints, rng: np.random.Generator) -> Ints:
    """Pairs of neighbours with different classes, found by bisection between rows of ``x``."""
    classes = form.evaluate(x).classes
    groups = [x[classes == value] for value in (0, 1)]
    if not all(map(len, groups)):
        return x[:0]
    a, b = (rows[rng.integers(len(rows), size=150)] for rows in groups)
    # 33 halvings bring any two 32-bit integers together.
    for _ in range(33):
        middle = (a + b) >> 1
        above = (form.evaluate(middle).classes == 1)[:, None]
        a, b = np.where(above, a, middle), np.where(above, middle, b)
        if (np.abs(a - b) <= 1).all():
            break
    return np.concatenate([a, b])


def _at_reach(form: Rbf, rng: np.random.Generator) -> Ints:
    """Observations away from a vector along one coordinate, out to where the kernel becomes 0."""
    vectors = form.arrays[0]
    out = []
    for whole in range(1, ONE_BITS + 3):
        for j in range(len(form.inputs)):
            at = vectors[rng.integers(len(vectors), size=2)].copy()
            step = int(np.sqrt(float(whole)) * (1 << form.places))
            at[:, j] += step * np.array([1, -1])
            low, high = limits(form.features)
            rest = rng.integers(low, high, (2, len(low)), endpoint=True)
            out.append(form.observations(np.clip(at, -LIMIT, LIMIT), rest))
    return np.concatenate(out)


def _at_limits(form: Rbf, rng: np.random.Generator) -> Ints:
    """Observations with one feature where its coordinate is clipped, the others at a vector."""
    out = []
    for j, one in enumerate(form.inputs):
        for end in (-LIMIT, LIMIT):
            rows = _some_vectors(form, rng, 5)
            coordinates = form.coordinates(rows)
            coordinates[:, j] = end
            beyond = form.observations(coordinates, rows)
            beyond[:, one.feature] += np.arange(-2, 3)
            out.append(np.clip(beyond, INT32_MIN, INT32_MAX))
    return np.concatenate(out)
