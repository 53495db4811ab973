"""Defines the form of any other network: a program of integer steps over a memory of numbers.

A feed-forward network of layers is an `Mlp`, a GRU or LSTM alone a `Recurrent`. What has more,
such as attention, convolutions or a step before its cell, is written down as the steps that it
takes: sums of products, moves, divisions, tables. An observation is put into the memory, and what
the program remembers of those before it; the steps are taken in order; then the scores stand in
the memory, and what is to be remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from export.fixed import limits
from export.forms.curve import Curve, curve_body, read_curve
from export.forms.recurrent import sequences
from export.ir import Ints, Verdicts, checked, verdicts
from export.program.exponents import exp_table, log_table
from export.program.kinds import KINDS, Unfit
from export.program.step import BITS, Floats, Shared, Step
from export.reading import Malformed, integer, integers, listed
from features.spec import Feature

BODY = frozenset({"size", "steps", "states", "answer", "outputs", "curve", "places"})
MAX_SIZE = 1 << 22
MAX_STEPS = 1 << 12
MAX_TABLE = 1 << 22
MAX_CURVE = 24
MAX_WORK = 1 << 27
"""Numbers that the steps of one observation read: more is no answer to wait for."""
MOST_TIMED = 256
_MEMORY = 1 << 22
"""Numbers of memory for observations that are answered at once, where nothing is remembered."""


@dataclass(frozen=True)
class State:
    """Numbers that are remembered: where they are put, and where they are found afterwards."""

    to: int
    n: int
    source: int


@dataclass(frozen=True)
class Program:
    """A network as steps. With states, observations are one sequence.

    Attributes
    ----------
    size : int
        Numbers of memory; the observation comes first.
    steps : tuple of Step
    states : tuple of State
        All 0 at first.
    answer, outputs : int
        Where the scores are, and how many.
    curve : Curve or None
        tanh, if a step needs it.
    places : int
        Fractional bits of the scores.
    """

    kind: ClassVar[str] = "program"
    features: tuple[Feature, ...]
    labels: tuple[str, ...]
    decision_threshold: int
    size: int
    steps: tuple[Step, ...]
    states: tuple[State, ...]
    answer: int
    outputs: int
    curve: Curve | None
    places: int

    @cached_property
    def shared(self) -> Shared:
        """Tables that the steps share."""
        kinds = {step.kind for step in self.steps}
        none = np.zeros(0, dtype=np.int64)
        return Shared(
            self.curve,
            log_table() if "log" in kinds else none,
            exp_table() if "exp" in kinds else none,
        )

    @property
    def remembered(self) -> int:
        """Numbers that are remembered from one observation to the next."""
        return sum(state.n for state in self.states)

    def evaluate(self, x: Ints) -> Verdicts:
        """Verdicts on observations within 32 bits (int64 array [N, d]), from the zero state."""
        x = checked(x, self.features)
        low, high = limits(self.features)
        scores = np.zeros((len(x), self.outputs), dtype=np.int64)
        rows = 1 if self.states else max(1, min(64, _MEMORY // self.size))
        memory = np.zeros((rows, self.size), dtype=np.int64)
        for start in range(0, len(x), rows):
            given = np.clip(x[start : start + rows], low, high)
            part = memory[: len(given)]
            part[:, : given.shape[1]] = given
            for step in self.steps:
                part[:, step.to : step.to + step.n] = KINDS[step.kind].run(step, part, self.shared)
            scores[start : start + rows] = part[:, self.answer : self.answer + self.outputs]
            # All are read before any is written: one may lie where another comes from.
            kept = [part[:, s.source : s.source + s.n].copy() for s in self.states]
            for state, numbers in zip(self.states, kept, strict=True):
                part[:, state.to : state.to + state.n] = numbers
        return verdicts(scores, self.labels, self.decision_threshold)


def body(form: Program) -> dict[str, Any]:
    """Steps, states and where the answer is."""
    return {
        "size": form.size,
        "steps": [
            {
                "kind": step.kind,
                "to": step.to,
                "n": step.n,
                "numbers": dict(step.numbers),
                "tables": {name: table.tolist() for name, table in step.tables.items()},
            }
            for step in form.steps
        ],
        "states": [{"to": s.to, "n": s.n, "source": s.source} for s in form.states],
        "answer": form.answer,
        "outputs": form.outputs,
        "curve": None if form.curve is None else curve_body(form.curve),
        "places": form.places,
    }


def parse(
    document: Mapping[str, Any],
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    decision_threshold: int,
) -> Program:
    """A program from a document's parts, of which no step leaves the memory or 64 bits."""
    size = integer(document["size"], "size", len(features), MAX_SIZE)
    curve = None if document["curve"] is None else read_curve(document["curve"], "curve")
    if curve is not None and (curve.q > MAX_CURVE or curve.entries[-1] > 1 << curve.q):
        raise Malformed(f"curve: entries up to one, with {MAX_CURVE} bits at most, were expected")
    found = listed(document["steps"], "steps")
    if not 1 <= len(found) <= MAX_STEPS:
        raise Malformed(f"steps: 1 to {MAX_STEPS} were expected")
    steps = tuple(_step(item, f"steps[{i}]", size) for i, item in enumerate(found))
    states = tuple(
        _state(item, f"states[{i}]", size, len(features))
        for i, item in enumerate(listed(document["states"], "states"))
    )
    outputs = integer(document["outputs"], "outputs", 1, size)
    if outputs not in {len(labels), 1 if len(labels) == 2 else len(labels)}:
        raise Malformed("outputs: one score for two labels, or one per label, was expected")
    answer = integer(document["answer"], "answer", 0, size - outputs)
    places = integer(document["places"], "places", 0, 62)
    form = Program(
        features, labels, decision_threshold, size, steps, states, answer, outputs, curve, places
    )
    check(form)
    return form


def check(form: Program) -> None:
    """Follow the largest numbers through the steps.

    Raises
    ------
    Malformed
        When a step could leave 64 bits, reads what no step before it has written, or when all
        together take too long.
    """
    bounds = np.full(form.size, np.inf)
    low, high = limits(form.features)
    bounds[: len(low)] = np.maximum(np.abs(low), np.abs(high))
    most = float((1 << BITS) - 1)
    for state in form.states:
        bounds[state.to : state.to + state.n] = most
    work = 0
    for number, step in enumerate(form.steps):
        if not _written(step, bounds).all():
            raise Malformed(f"steps[{number}]: reads what no step has written")
        try:
            found = KINDS[step.kind].reach(step, bounds, form.shared)
        except Unfit as error:
            raise Malformed(f"steps[{number}]: {error}") from None
        bounds[step.to : step.to + step.n] = found
        work += step.n * step.numbers.get("k", 1) * step.numbers.get("inputs", 1)
    if work > MAX_WORK:
        raise Malformed(f"steps: {work} numbers are read, over {MAX_WORK}")
    for number, state in enumerate(form.states):
        if not bounds[state.source : state.source + state.n].max() <= most:
            raise Malformed(f"states[{number}]: numbers of {BITS} bits were expected")
    if not np.isfinite(bounds[form.answer : form.answer + form.outputs]).all():
        raise Malformed("answer: nothing is written there")


def _written(step: Step, bounds: Floats) -> NDArray[np.bool_]:
    """Of each number that a step reads, whether it was written before."""
    if step.kind == "take":
        # It needn't read all of its operand.
        places = step.tables["map"]
        return np.isfinite(bounds[step.numbers["a"] + places[places >= 0]])
    lengths = KINDS[step.kind].operands
    starts = [(step.numbers[name], lengths[name](step.n, step.numbers)) for name in lengths]
    return np.concatenate([np.isfinite(bounds[at : at + length]) for at, length in starts])


def _step(item: Any, where: str, size: int) -> Step:
    keys = {"kind", "to", "n", "numbers", "tables"}
    if not isinstance(item, Mapping) or set(item) != keys:
        raise Malformed(f"{where}: an object with {', '.join(sorted(keys))} was expected")
    if not isinstance(item["kind"], str) or item["kind"] not in KINDS:
        raise Malformed(f"{where}.kind: one of {', '.join(KINDS)} was expected")
    kind = KINDS[item["kind"]]
    n = integer(item["n"], f"{where}.n", 1, size)
    to = integer(item["to"], f"{where}.to", 0, size - n)
    given, tables = item["numbers"], item["tables"]
    for name, found, wanted in (
        ("numbers", given, {*kind.operands, *kind.numbers}),
        ("tables", tables, set(kind.tables)),
    ):
        if not isinstance(found, Mapping) or set(found) != wanted:
            raise Malformed(f"{where}.{name}: {', '.join(sorted(wanted)) or 'none'} expected")
    numbers = {
        name: integer(given[name], f"{where}.{name}", low, high)
        for name, (low, high) in kind.numbers.items()
    }
    for name, length in kind.operands.items():
        if length(n, numbers) > size:
            raise Malformed(f"{where}.{name}: {length(n, numbers)} numbers aren't in {size}")
        numbers[name] = integer(given[name], f"{where}.{name}", 0, size - length(n, numbers))
    read: dict[str, Ints] = {}
    for name, count in kind.tables.items():
        low, high = (0, 62) if name in ("shift", "up", "down") else (-(2**62), 2**62)
        if name == "map":
            low, high = -1, numbers["of"] - 1
        read[name] = np.array(integers(tables[name], f"{where}.{name}", low, high), dtype=np.int64)
        lengths = {1, n} if count is None else {count(n, numbers)}
        if len(read[name]) not in lengths or len(read[name]) > MAX_TABLE:
            raise Malformed(f"{where}.{name}: {' or '.join(map(str, lengths))} were expected")
    for name, length in kind.operands.items():
        if numbers[name] < to + n and to < numbers[name] + length(n, numbers):
            raise Malformed(f"{where}.{name}: overlaps what is written")
    return Step(item["kind"], to, n, numbers, read)


def _state(item: Any, where: str, size: int, features: int) -> State:
    if not isinstance(item, Mapping) or set(item) != {"to", "n", "source"}:
        raise Malformed(f"{where}: an object with n, source, to was expected")
    n = integer(item["n"], f"{where}.n", 1, size)
    # An observation is put over whatever is there.
    if features + n > size:
        raise Malformed(f"{where}.n: {n} numbers beside the observation aren't in {size}")
    to = integer(item["to"], f"{where}.to", features, size - n)
    return State(to, n, integer(item["source"], f"{where}.source", 0, size - n))


def boundary_vectors(form: Program, rng: np.random.Generator) -> dict[str, Ints]:
    """Sequences that fill what is remembered: held ends of the ranges, and slow walks."""
    return {"sequences": sequences(form.features, rng)}


def timed(form: Program, rng: np.random.Generator, rows: int) -> Ints:
    """Observations drawn evenly from the features' ranges, few: each takes many steps."""
    low, high = limits(form.features)
    shape = (min(rows, MOST_TIMED), len(form.features))
    return rng.integers(low, high, shape, endpoint=True)
