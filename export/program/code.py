"""Prepares a program's steps for the templates of C and eBPF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from export.forms.program import Program
from export.ir import Ints
from export.program.exponents import ENTRY_BITS, LN2, LOG2E, MANTISSA

TYPES = ((1 << 15, "int16_t"), (1 << 31, "int32_t"), (1 << 63, "int64_t"))
"""Bound of what a type of C holds, and its name."""


@dataclass(frozen=True)
class Table:
    """A step's constants: one that is written where it is used, or an array of the least type."""

    values: list[int]
    type: str
    single: bool


def table(values: Ints) -> Table:
    """A table as C has it."""
    most = int(np.abs(values).max(initial=0))
    name = next(name for bound, name in TYPES if most < bound)
    return Table([int(v) for v in values], name, len(values) == 1)


def values(form: Program) -> dict[str, Any]:
    """What the templates of a program need beside the form."""
    kept, start = [], 0
    for state in form.states:
        kept.append({"n": state.n, "to": state.to, "source": state.source, "start": start})
        start += state.n
    return {
        "steps": list(steps(form)),
        "kinds": {step.kind for step in form.steps},
        "kept": kept,
        "mantissa": MANTISSA,
        "entry_bits": ENTRY_BITS,
        "ln2": LN2,
        "log2e": LOG2E,
    }


def steps(form: Program) -> Iterator[dict[str, Any]]:
    """Number, kind, place and constants of each step."""
    for number, step in enumerate(form.steps):
        yield {
            "number": number,
            "kind": step.kind,
            "to": step.to,
            "n": step.n,
            "most": step.most,
            "numbers": dict(step.numbers),
            "tables": {name: table(values) for name, values in step.tables.items()},
        }


def unit(identifier: str, form: Program) -> str:
    """The driver's functions around a program: the rows are one sequence."""
    state = "&state, " if form.states else ""
    held = f"static struct {identifier}_state state;\n" if form.states else ""
    return (
        '#include "model.h"\n'
        "int model_answer(const int32_t *f, int64_t *scores);\n"
        "int model_classify(const int32_t *f);\n"
        f"static struct {identifier}_memory memory;\n{held}"
        "int model_answer(const int32_t *f, int64_t *scores)\n"
        f"{{ return {identifier}_step(&memory, {state}f, scores); }}\n"
        "int model_classify(const int32_t *f)\n"
        f"{{ int64_t scores[{form.outputs}]; "
        f"return {identifier}_step(&memory, {state}f, scores); }}\n"
    )
