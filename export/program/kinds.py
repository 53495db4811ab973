"""The kinds of steps: moves, sums and products, layers, reductions and curves.

Each is defined here in Python, which is the meaning of a program, and once more in the templates
``c_steps.j2``, of which C and eBPF are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from export.ir import Ints
from export.program import exponents
from export.program.step import BITS, MOST, Floats, Kind, Length, Shared, Step

_SHIFT = (0, 62)
_BITS = {"bits": (BITS, 55)}


class Unfit(Exception):
    """A step that could leave 64 bits, or whose numbers contradict each other; says which."""


def _fits(bound: Floats) -> Floats:
    if bound.size and not bound.max() < MOST:
        raise Unfit("the sum could overflow 64 bits")
    return bound


def _of(step: Step, bounds: Floats, name: str = "a", k: int = 1) -> Floats:
    at = step.numbers[name]
    return bounds[at : at + step.n * k]


def _clipped(step: Step, bound: Floats) -> Floats:
    return np.minimum(bound, float(step.most))


def _take(step: Step, memory: Ints, shared: Shared) -> Ints:
    places = step.tables["map"]
    found = memory[:, step.numbers["a"] + np.maximum(places, 0)]
    return np.where(places < 0, 0, found)


def _take_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    places = step.tables["map"]
    return np.where(places < 0, 0.0, bounds[step.numbers["a"] + np.maximum(places, 0)])


def _line(step: Step, memory: Ints, shared: Shared) -> Ints:
    t = step.tables
    return step.clipped((step.operand(memory) * t["mul"] + t["add"]) >> t["shift"])


def _line_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    t = step.tables
    bound = _fits(_of(step, bounds) * np.abs(t["mul"]) + np.abs(t["add"]).astype(np.float64))
    return _clipped(step, np.ceil(bound / 2.0 ** t["shift"]))


def _join(step: Step, memory: Ints, shared: Shared) -> Ints:
    t = step.tables
    a, b = step.operand(memory), step.operand(memory, "b")
    return step.clipped((a * t["mul_a"] + b * t["mul_b"] + t["add"]) >> t["shift"])


def _join_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    t = step.tables
    a, b = _of(step, bounds), _of(step, bounds, "b")
    parts = a * np.abs(t["mul_a"]) + b * np.abs(t["mul_b"]) + np.abs(t["add"])
    return _clipped(step, np.ceil(_fits(parts) / 2.0 ** t["shift"]))


def _mul(step: Step, memory: Ints, shared: Shared) -> Ints:
    t = step.tables
    product = step.operand(memory) * step.operand(memory, "b")
    return step.clipped((product + t["add"]) >> t["shift"])


def _mul_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    t = step.tables
    bound = _fits(_of(step, bounds) * _of(step, bounds, "b") + np.abs(t["add"]))
    return _clipped(step, np.ceil(bound / 2.0 ** t["shift"]))


def _div(step: Step, memory: Ints, shared: Shared) -> Ints:
    t = step.tables
    a, b = step.operand(memory), step.operand(memory, "b")
    found = (np.abs(a) << t["up"]) // (np.maximum(np.abs(b), 1) << t["down"])
    return step.clipped(np.where((a < 0) != (b < 0), -found, found))


def _div_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    t = step.tables
    bound = _fits(_of(step, bounds) * 2.0 ** t["up"])
    _fits(np.maximum(_of(step, bounds, "b"), 1.0) * 2.0 ** t["down"])
    return _clipped(step, bound)


def _less(step: Step, memory: Ints, shared: Shared) -> Ints:
    return np.minimum(step.operand(memory), step.operand(memory, "b"))


def _more(step: Step, memory: Ints, shared: Shared) -> Ints:
    return np.maximum(step.operand(memory), step.operand(memory, "b"))


def _either_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    return np.maximum(_of(step, bounds), _of(step, bounds, "b"))


def _bound(step: Step, memory: Ints, shared: Shared) -> Ints:
    return np.clip(step.operand(memory), step.tables["low"], step.tables["high"])


def _bound_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    low, high = step.tables["low"], step.tables["high"]
    if (low > high).any():
        raise Unfit("a lower end above the upper one")
    most = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    # What is between the ends stays as it is; what isn't becomes the nearer end.
    kept = np.maximum(_of(step, bounds), np.maximum(low, -high))
    found = np.minimum(most, kept)
    if found.max() > step.most:
        raise Unfit("an end beyond the bits that the results may have")
    return found


def _above(step: Step, memory: Ints, shared: Shared) -> Ints:
    found = step.operand(memory) > step.tables["than"]
    return np.where(found, step.numbers["one"], 0)


def _above_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    return np.full(step.n, float(step.numbers["one"]))


def _size(step: Step, memory: Ints, shared: Shared) -> Ints:
    return np.abs(step.operand(memory))


def _same_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    return _of(step, bounds)


def _layer(step: Step, memory: Ints, shared: Shared) -> Ints:
    numbers, tables = step.numbers, step.tables
    groups, inputs, outputs = numbers["groups"], numbers["inputs"], numbers["outputs"]
    at = numbers["a"]
    given = memory[:, at : at + groups * inputs].reshape(len(memory), groups, inputs)
    sums = given @ tables["weights"].reshape(outputs, inputs).T + tables["biases"]
    found = step.clipped(sums >> numbers["shift"]).reshape(len(memory), step.n)
    return np.maximum(found, 0) if numbers["relu"] else found


def _layer_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    numbers, tables = step.numbers, step.tables
    groups, inputs, outputs = numbers["groups"], numbers["inputs"], numbers["outputs"]
    if groups * outputs != step.n:
        raise Unfit(f"{groups} groups of {outputs} results aren't {step.n}")
    at = numbers["a"]
    given = bounds[at : at + groups * inputs].reshape(groups, inputs)
    weights = np.abs(tables["weights"].reshape(outputs, inputs)).astype(np.float64)
    sums = _fits(given @ weights.T + np.abs(tables["biases"]))
    return _clipped(step, np.ceil(sums / 2.0 ** numbers["shift"])).ravel()


def _sum(step: Step, memory: Ints, shared: Shared) -> Ints:
    k = step.numbers["k"]
    sums = step.operand(memory, k=k).reshape(len(memory), step.n, k).sum(axis=2)
    found = (np.abs(sums) // step.numbers["by"]) >> step.numbers["shift"]
    return step.clipped(np.where(sums < 0, -found, found))


def _sum_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    k = step.numbers["k"]
    sums = _fits(_of(step, bounds, k=k).reshape(step.n, k).sum(axis=1))
    return _clipped(step, np.ceil(sums / step.numbers["by"] / 2.0 ** step.numbers["shift"]))


def _peak(step: Step, memory: Ints, shared: Shared) -> Ints:
    k = step.numbers["k"]
    return np.asarray(step.operand(memory, k=k).reshape(len(memory), step.n, k).max(axis=2))


def _floor(step: Step, memory: Ints, shared: Shared) -> Ints:
    k = step.numbers["k"]
    return np.asarray(step.operand(memory, k=k).reshape(len(memory), step.n, k).min(axis=2))


def _extreme_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    k = step.numbers["k"]
    return np.asarray(_of(step, bounds, k=k).reshape(step.n, k).max(axis=1))


def _rows(step: Step, memory: Ints, shared: Shared) -> Ints:
    numbers = step.numbers
    at, width, count = numbers["a"], numbers["width"], numbers["rows"]
    table = step.tables["table"].reshape(count, width)
    wanted = np.clip(memory[:, at : at + step.n // width], 0, count - 1)
    return table[wanted].reshape(len(memory), step.n)


def _rows_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    width, table = step.numbers["width"], np.abs(step.tables["table"]).astype(np.float64)
    if step.n % width:
        raise Unfit(f"rows of {width} numbers don't make {step.n}")
    if table.max() > step.most:
        raise Unfit("a row's number beyond the bits that the results may have")
    return np.tile(table.reshape(-1, width).max(axis=0), step.n // width)


def _log(step: Step, memory: Ints, shared: Shared) -> Ints:
    t = step.tables
    found = exponents.log(step.operand(memory), shared.log)
    return step.clipped((found + t["add"]) >> step.numbers["shift"])


def _log_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    most = 43.0 * 2.0**exponents.PLACES + np.abs(step.tables["add"])
    return _clipped(step, np.broadcast_to(_fits(np.atleast_1d(most)), step.n))


def _exp(step: Step, memory: Ints, shared: Shared) -> Ints:
    return exponents.exp(step.operand(memory), shared.exp)


def _exp_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    return np.full(step.n, float(shared.exp.max()))


def _root(step: Step, memory: Ints, shared: Shared) -> Ints:
    return step.clipped(exponents.root(np.maximum(step.operand(memory), 0) << step.numbers["up"]))


def _root_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    return _clipped(step, np.ceil(np.sqrt(_fits(_of(step, bounds) * 2.0 ** step.numbers["up"]))))


def _tanh(step: Step, memory: Ints, shared: Shared) -> Ints:
    assert shared.curve is not None
    return shared.curve.tanh(step.operand(memory))


def _sigmoid(step: Step, memory: Ints, shared: Shared) -> Ints:
    assert shared.curve is not None
    return shared.curve.sigmoid(step.operand(memory))


def _curve_reach(step: Step, bounds: Floats, shared: Shared) -> Floats:
    if shared.curve is None:
        raise Unfit("needs a curve")
    if _of(step, bounds).max() >= 2.0**31:
        raise Unfit("a curve of numbers beyond 32 bits")
    return np.full(step.n, 2.0**shared.curve.q)


def _n(n: int, numbers: Mapping[str, int]) -> int:
    return n


def _product(*names: str) -> Length:
    return lambda n, numbers: math.prod(numbers[name] for name in names)


def _each(name: str) -> Length:
    return lambda n, numbers: n * numbers[name]


def _by_row(n: int, numbers: Mapping[str, int]) -> int:
    return n // numbers["width"]


_ONE, _TWO = {"a": _n}, {"a": _n, "b": _n}
_FEW, _MANY = (1, 1 << 16), (1, 1 << 20)
_LINE = {"mul": None, "add": None, "shift": None}
_ENDS = {"inputs": _FEW, "outputs": _FEW, "groups": _FEW, "shift": _SHIFT, "relu": (0, 1)}
_GROUPS = {"k": _MANY}

KINDS: dict[str, Kind] = {
    "take": Kind({"a": _product("of")}, {"of": (1, 1 << 24)}, {"map": _n}, _take, _take_reach),
    "line": Kind(_ONE, _BITS, _LINE, _line, _line_reach),
    "join": Kind(
        _TWO,
        _BITS,
        {"mul_a": None, "mul_b": None, "add": None, "shift": None},
        _join,
        _join_reach,
    ),
    "mul": Kind(_TWO, _BITS, {"add": None, "shift": None}, _mul, _mul_reach),
    "div": Kind(_TWO, _BITS, {"up": None, "down": None}, _div, _div_reach),
    "less": Kind(_TWO, {}, {}, _less, _either_reach),
    "more": Kind(_TWO, {}, {}, _more, _either_reach),
    "bound": Kind(_ONE, _BITS, {"low": None, "high": None}, _bound, _bound_reach),
    "above": Kind(_ONE, {"one": (1, 1 << 30)}, {"than": None}, _above, _above_reach),
    "size": Kind(_ONE, {}, {}, _size, _same_reach),
    "layer": Kind(
        {"a": _product("groups", "inputs")},
        _ENDS,
        {"weights": _product("inputs", "outputs"), "biases": _product("outputs")},
        _layer,
        _layer_reach,
    ),
    "sum": Kind(
        {"a": _each("k")}, {**_BITS, **_GROUPS, "by": _MANY, "shift": _SHIFT}, {}, _sum, _sum_reach
    ),
    "peak": Kind({"a": _each("k")}, _GROUPS, {}, _peak, _extreme_reach),
    "floor": Kind({"a": _each("k")}, _GROUPS, {}, _floor, _extreme_reach),
    "rows": Kind(
        {"a": _by_row},
        {"width": _MANY, "rows": _MANY},
        {"table": _product("rows", "width")},
        _rows,
        _rows_reach,
    ),
    "log": Kind(_ONE, {"shift": _SHIFT}, {"add": None}, _log, _log_reach),
    "exp": Kind(_ONE, {}, {}, _exp, _exp_reach),
    "root": Kind(_ONE, {"up": _SHIFT}, {}, _root, _root_reach),
    "tanh": Kind(_ONE, {}, {}, _tanh, _curve_reach),
    "sigmoid": Kind(_ONE, {}, {}, _sigmoid, _curve_reach),
}
"""Name -> what it is."""
