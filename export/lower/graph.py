"""Lowers any ONNX network of usual operators to a program of integer steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.fixed import limits, to_values
from export.forms.program import Program, State, check
from export.ir import Ints
from export.lower.assembler import MOST_PLACES, WIDE, Assembler, Tensor
from export.lower.dense import network_curve
from export.lower.graph_ranges import Graph, prepared
from export.lower.prepare import NotLowerable
from export.onnx.run import ANSWERS
from export.program.exponents import PLACES
from export.program.step import BITS
from export.reading import Malformed
from features.spec import Feature

Floats = NDArray[np.float64]
CALIBRATED = 600
"""Observations of a sequence, and as many that are drawn, on which ranges are measured."""
FEW = 128
"""Up to so many numbers each has fractional bits of its own, until a layer takes them."""
EXP_BITS = 26
MOVES = frozenset(
    {"Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze",
     "Transpose", "Unsqueeze"}
)  # fmt: skip
"""Operators that move numbers and change none."""
WHOLE, BROKEN = ("INT32", "INT64"), ("FLOAT", "DOUBLE")
"""What Cast may make of a number: a whole one, or one as it is."""
_FAR = 2.0**61
"""No number of a program is as large."""
REDUCED = {"ReduceMax": "peak", "ReduceMin": "floor", "ReduceMean": "sum", "ReduceSum": "sum"}
SUMS_UP = frozenset({"Add", "ReduceMean", "ReduceSum"})
Handler = Callable[["_Lowering", Any], None]


def lower_graph(
    content: bytes,
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    threshold: float,
    rows: Floats,
) -> Program:
    """Lower a network.

    Parameters
    ----------
    content : bytes
        ONNX, with ``features``, states, and ``scores`` or ``probability`` [N], which ends with
        Sigmoid.
    features : tuple of Feature
    labels : tuple of str
    threshold : float
        On the probability.
    rows : float64 array [n, d]
        Observations as they come, one after the other: they say how large numbers become.

    Raises
    ------
    NotLowerable
        For operators without a form, and numbers that fit no integers.
    """
    low, high = limits(features)
    rng = np.random.default_rng(0)
    drawn = to_values(rng.integers(low, high, (CALIBRATED, len(low)), endpoint=True), features)
    ends = to_values(np.stack([low, high, low]), features)
    seen = np.concatenate([rows[:CALIBRATED], ends, drawn])
    lowering = _Lowering(prepared(content, seen, "network"), features)
    return lowering.program(features, labels, threshold)


class _Lowering:
    """What of the graph has been written down as steps."""

    def __init__(self, graph: Graph, features: tuple[Feature, ...]) -> None:
        self.graph, self.out = graph, Assembler(len(features))
        self.constants = dict(graph.constants)
        self.tensors: dict[str, Tensor] = {}
        self.raw: dict[str, tuple[Tensor, Floats]] = {}
        self.users: dict[str, list[Any]] = {}
        self.even_now: set[str] = set()
        self.maker: dict[str, Any] = {}
        for node in graph.nodes:
            self.maker |= dict.fromkeys(node.output, node)
            for name in node.input:
                self.users.setdefault(name, []).append(node)
        self.logit = ""
        self.curve = network_curve()
        scale = np.array([f.scale for f in features], dtype=np.float64)
        given = Tensor(0, 0, (1, len(features)), np.zeros(len(features), dtype=np.int64))
        if (scale == 1).all():
            self.tensors["features"] = given
        else:
            q = self.places("features", given.n)
            self.tensors["features"] = self.out.line(given, 1 / scale, 0.0, q)

    def program(
        self, features: tuple[Feature, ...], labels: tuple[str, ...], threshold: float
    ) -> Program:
        """All steps, and what they are part of."""
        answer = next((name for name in ANSWERS if name in self.graph.ranges), "")
        if not answer:
            raise NotLowerable(f"no output {' or '.join(ANSWERS)}")
        if answer == "probability":
            self.logit = self._before_sigmoid(answer)
        for before, after in self.graph.states:
            n = self.graph.ranges[before].size
            most = max(self.graph.ranges[before].max(), self.graph.ranges[after].max())
            buffer = self.out.buffer(n, keep=True)
            q = np.full(n, _places(most, BITS), dtype=np.int64)
            self.tensors[before] = Tensor(buffer, 0, self.graph.ranges[before].shape, q)
        for node in self.graph.nodes:
            if node.output[0] not in self.tensors:
                self._take(node)
        return self._built(features, labels, threshold, answer)

    def _before_sigmoid(self, answer: str) -> str:
        """The Sigmoid's output of which a probability is made by moves alone.

        What stands in its place is the sum that the Sigmoid was given.
        """
        name = answer
        while name in self.maker and self.maker[name].op_type in MOVES:
            name = self.maker[name].input[0]
            if len(self.users[name]) > 1 or name in self.graph.ends:
                raise NotLowerable("a probability that something else is made of, too")
        if name not in self.maker or self.maker[name].op_type != "Sigmoid":
            raise NotLowerable("a probability that doesn't come of a Sigmoid at the end")
        return name

    def _built(
        self,
        features: tuple[Feature, ...],
        labels: tuple[str, ...],
        threshold: float,
        answer: str,
    ) -> Program:
        scores = self.out.even(self.tensors[answer])
        after = [
            self.out.rescaled(self.tensors[name], self.tensors[before].q)
            for before, name in self.graph.states
        ]
        given = [self.tensors[before] for before, _ in self.graph.states]
        steps, size, places = self.out.finished([scores, *after, *given])
        count = len(after)
        states = tuple(
            State(places[1 + count + i], given[i].n, places[1 + i]) for i in range(count)
        )
        q = int(scores.q[0])
        if q < 0:
            raise NotLowerable("scores leave 32 bits")
        cut = 0
        if answer == "probability":
            if not 0 < threshold < 1:
                raise NotLowerable("a threshold of 0 or 1 needs no network")
            cut = math.floor(math.log(threshold / (1 - threshold)) * 2.0**q)
        kinds = {step.kind for step in steps}
        form = Program(
            features, labels, cut, size, steps, states, places[0], scores.n,
            self.curve if kinds & {"tanh", "sigmoid"} else None, q,
        )  # fmt: skip
        try:
            check(form)
        except Malformed as error:
            raise NotLowerable(str(error)) from None
        return form

    def _take(self, node: Any) -> None:
        if all(not name or name in self.constants for name in node.input):
            self._fold(node)
        elif node.op_type == "Shape":
            shape = self.tensor(node.input[0]).shape
            self.constants[node.output[0]] = np.array(shape, dtype=np.int64)
        elif node.output[0] == self.logit:
            self.tensors[self.logit] = self.tensor(node.input[0])
        elif node.op_type == "Gather" and node.input[0] in self.constants:
            self._rows(node)
        elif node.op_type in MOVES:
            self._move(node)
        elif node.op_type in HANDLERS:
            HANDLERS[node.op_type](self, node)
        else:
            raise NotLowerable(f"{node.op_type} has no integer form here")

    def _fold(self, node: Any) -> None:
        from onnx.reference import ReferenceEvaluator

        given = {name: self.constants[name] for name in node.input if name}
        found = ReferenceEvaluator(node).run(None, given)
        self.constants |= dict(zip(node.output, found, strict=True))

    def _move(self, node: Any) -> None:
        """Find out by moving the numbers' places."""
        from onnx.reference import ReferenceEvaluator

        x = self.tensor(node.input[0])
        # From 1 on, so that what is filled up with 0 has the place -1.
        places = np.arange(1, x.n + 1, dtype=np.int64).reshape(x.shape)
        given = {n: self.constant(n) for n in node.input[1:] if n}
        if node.op_type == "Pad" and len(node.input) > 2 and node.input[2]:
            if np.any(given[node.input[2]]):
                raise NotLowerable("Pad with another number than 0")
            given[node.input[2]] = np.zeros((), dtype=np.int64)
        given[node.input[0]] = places
        for name, found in zip(node.output, ReferenceEvaluator(node).run(None, given), strict=True):
            self.tensors[name] = self.out.moved(x, np.asarray(found) - 1)
            self._follow(name, node)

    def _rows(self, node: Any) -> None:
        table = np.asarray(self.constants[node.input[0]])
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        at = self.out.rescaled(self.tensor(node.input[1]), 0)
        if axis:
            raise NotLowerable("Gather along another axis than the first")
        width = table[0].size
        whole = table.dtype.kind in "iu"
        q = 0 if whole else _places(np.abs(table).max(), BITS)
        held = np.floor(table.astype(np.float64) * 2.0**q + 0.5).astype(np.int64)
        shape = (*at.shape, *table.shape[1:])
        self.tensors[node.output[0]] = self.out.emit(
            "rows", shape, q, {"a": at}, {"width": width, "rows": len(table)}, {"table": held}
        )
        self.even_now.add(node.output[0])

    def tensor(self, name: str) -> Tensor:
        """What the steps so far made of a name that must not be a constant."""
        if name not in self.tensors:
            raise NotLowerable(f"{name} is a constant where a computed tensor was expected")
        return self.tensors[name]

    def constant(self, name: str) -> NDArray[Any]:
        """The value of a name that must be a constant."""
        if name not in self.constants:
            raise NotLowerable(f"{name} is computed where a constant was expected")
        return np.asarray(self.constants[name])

    def places(self, name: str, n: int, bits: int = BITS) -> Ints:
        """Fractional bits for a tensor: of each number, or of all alike."""
        ranges = self.graph.ranges[name].ravel()
        if n > FEW or name in self.even_now:
            return np.full(n, _places(ranges.max(), bits), dtype=np.int64)
        return np.array([_places(one, bits) for one in ranges], dtype=np.int64)

    def _follow(self, name: str, node: Any) -> None:
        """Remember whether numbers come of a layer, so that all have the same fractional bits."""
        if any(given in self.even_now for given in node.input):
            self.even_now.add(name)

    def wide(self, name: str) -> int:
        """Bits of a tensor: more where only sums and roots are made of it."""
        users = self.users.get(name, [])
        roots = [
            user.op_type == "Sqrt"
            or (user.op_type in SUMS_UP and self.wide(user.output[0]) == WIDE)
            or (
                user.op_type == "Div"
                and user.input[1] in self.constants
                and self.wide(user.output[0]) == WIDE
            )
            for user in users
        ]
        return WIDE if roots and all(roots) else BITS

    def pair(self, node: Any) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """Both operands of a node in the shape of what it gives."""
        a, b = (self.tensor(name) for name in node.input[:2])
        shape = np.broadcast_shapes(a.shape, b.shape)
        return self._spread(a, shape), self._spread(b, shape), shape

    def _spread(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        if x.n == math.prod(shape):
            return x.shaped(shape)
        places = np.broadcast_to(np.arange(x.n).reshape(x.shape), shape)
        return self.out.moved(x, places)

    def constant_of(self, node: Any) -> tuple[int, Floats] | None:
        """Which of a node's two operands is a constant, and its values; None if none is."""
        for i, name in enumerate(node.input[:2]):
            if name in self.constants:
                return i, np.asarray(self.constants[name], dtype=np.float64)
        return None

    def only_user(self, name: str, op: str) -> Any:
        """The one node that a tensor goes to, if it is of this kind and no output; else None."""
        users = self.users.get(name, [])
        alone = len(users) == 1 and users[0].op_type == op and name not in self.graph.ends
        return users[0] if alone else None

    def put(self, node: Any, found: Tensor) -> None:
        """Remember what a node gives."""
        self.tensors[node.output[0]] = found
        self._follow(node.output[0], node)


def _places(most: float, bits: int) -> int:
    """Fractional bits with which numbers up to twice ``most`` have so many bits."""
    if not math.isfinite(most):
        raise NotLowerable("numbers on the way are infinite or undefined")
    if most <= 0:
        return MOST_PLACES
    return int(np.clip(bits - 2 - math.ceil(math.log2(most)), -30, MOST_PLACES))


def _linear(low: _Lowering, node: Any) -> None:
    """Add, Sub, Mul and Div, of two tensors or one and a constant."""
    known = low.constant_of(node)
    if known is None:
        _of_two(low, node)
        return
    place, value = known
    x = low.tensor(node.input[1 - place])
    shape = np.broadcast_shapes(x.shape, value.shape)
    x, held = low._spread(x, shape), np.broadcast_to(value, shape).ravel()
    op, name = node.op_type, node.output[0]
    if op == "Div" and place == 0:
        _quotient(low, node, low.out.line(x, 0.0, held, _each(held)), x, shape)
        return
    factor = {"Mul": held, "Div": 1 / np.where(held == 0, 1, held)}.get(op, np.ones(x.n))
    added = {"Add": held, "Sub": held if place == 0 else -held}.get(op, np.zeros(x.n))
    if op == "Sub" and place == 0:
        factor = -factor
    low._follow(name, node)
    bits = low.wide(name)
    low.put(node, low.out.line(x, factor, added, low.places(name, x.n, bits), bits))
    if op == "Mul":
        low.raw[name] = (x, held)


def _each(values: Floats) -> Ints:
    return np.array([_places(one, BITS) for one in np.abs(values)], dtype=np.int64)


def _of_two(low: _Lowering, node: Any) -> None:
    a, b, shape = low.pair(node)
    op, name = node.op_type, node.output[0]
    low._follow(name, node)
    bits = low.wide(name)
    q = low.places(name, a.n, bits)
    if op == "Div":
        _quotient(low, node, a, b, shape)
    elif op == "Mul":
        q = np.minimum(q, a.q + b.q)
        shift = a.q + b.q - q
        tables = {"add": _half(shift), "shift": shift}
        low.put(node, low.out.emit("mul", shape, q, {"a": a, "b": b}, {"bits": bits}, tables))
    else:
        # Both are shifted up to the finer of the two, as far as 64 bits allow.
        fine = np.minimum(np.maximum(a.q, b.q), np.minimum(a.q, b.q) + 58 - bits)
        a, b = (low.out.rescaled(x, np.minimum(x.q, fine), x.bits) for x in (a, b))
        q = np.minimum(q, fine)
        shift = fine - q
        sign = -1 if op == "Sub" else 1
        tables = {
            "mul_a": 1 << (fine - a.q),
            "mul_b": sign * (1 << (fine - b.q)),
            "add": _half(shift),
            "shift": shift,
        }
        low.put(node, low.out.emit("join", shape, q, {"a": a, "b": b}, {"bits": bits}, tables))


def _half(shift: Ints) -> Ints:
    return np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0)


def _quotient(low: _Lowering, node: Any, a: Tensor, b: Tensor, shape: tuple[int, ...]) -> None:
    q = np.minimum(low.places(node.output[0], a.n), a.q - b.q + 30)
    up = q - a.q + b.q
    tables = {"up": np.maximum(up, 0), "down": np.maximum(-up, 0)}
    low.put(node, low.out.emit("div", shape, q, {"a": a, "b": b}, None, tables))


def _clip(low: _Lowering, node: Any) -> None:
    ends = [low.constant(n) if n else None for n in (*node.input[1:3], "", "")[:2]]
    low.put(node, _bounded(low, node, node.input[0], ends[0], ends[1]))


def _bounded(low: _Lowering, node: Any, name: str, least: Any, most: Any) -> Tensor:
    x = low.tensor(name)
    held = low.raw.get(name)
    if held is not None and most is not None:
        # A product that is cut off: with the bits that are left of it, not those that it had.
        source, factor = held
        x = low.out.line(source, factor, 0.0, low.places(node.output[0], x.n))
    top = np.full(x.n, (1 << BITS) - 1)
    bottom = -top
    for end, sign in ((least, 1), (most, -1)):
        if end is not None:
            scaled = np.broadcast_to(np.asarray(end, np.float64), x.shape).ravel() * 2.0**x.q
            whole = np.floor(np.clip(scaled, -(2.0**31) + 1, 2.0**31 - 1) + 0.5).astype(np.int64)
            bottom, top = (whole, top) if sign > 0 else (bottom, whole)
    return low.out.emit(
        "bound", x.shape, x.q, {"a": x}, None, {"low": np.minimum(bottom, top), "high": top}
    )


def _extreme(low: _Lowering, node: Any) -> None:
    """Min and Max, of two."""
    known, largest = low.constant_of(node), node.op_type == "Max"
    if len(node.input) != 2:
        raise NotLowerable(f"{node.op_type} of {len(node.input)}")
    if known is not None:
        value, name = known[1], node.input[1 - known[0]]
        ends = (value, None) if largest else (None, value)
        low.put(node, _bounded(low, node, name, *ends))
        return
    a, b, shape = low.pair(node)
    q = np.minimum(a.q, b.q)
    a, b = low.out.rescaled(a, q), low.out.rescaled(b, q)
    low.put(node, low.out.emit("more" if largest else "less", shape, q, {"a": a, "b": b}))


def _above(low: _Lowering, node: Any) -> None:
    known = low.constant_of(node)
    if known is None or known[0] == 0:
        raise NotLowerable("Greater than what isn't a constant")
    x = low.tensor(node.input[0])
    if np.isnan(known[1]).any():
        raise NotLowerable("Greater than what isn't a number")
    scaled = np.broadcast_to(known[1], x.shape).ravel() * 2.0**x.q
    than = np.floor(np.clip(scaled, -_FAR, _FAR)).astype(np.int64)
    low.put(node, low.out.emit("above", x.shape, 0, {"a": x}, {"one": 1}, {"than": than}))


def _cast(low: _Lowering, node: Any) -> None:
    from onnx import TensorProto

    x = low.tensor(node.input[0])
    to = TensorProto.DataType.Name(next(a.i for a in node.attribute if a.name == "to"))
    if to in WHOLE:
        # Towards zero, as a sum of one number is divided.
        x = low.out.even(low.out.rescaled(x, np.maximum(x.q, 0)))
        numbers = {"k": 1, "by": 1, "shift": int(x.q[0])}
        low.put(node, low.out.emit("sum", x.shape, 0, {"a": x}, numbers))
    elif to == "BOOL":
        size = low.out.emit("size", x.shape, x.q, {"a": x})
        low.put(node, low.out.emit("above", x.shape, 0, {"a": size}, {"one": 1}, {"than": 0}))
    elif to in BROKEN:
        low.put(node, x)
    else:
        raise NotLowerable(f"Cast to {to}")


def _abs(low: _Lowering, node: Any) -> None:
    x = low.tensor(node.input[0])
    low.put(node, low.out.emit("size", x.shape, x.q, {"a": x}))


def _relu(low: _Lowering, node: Any) -> None:
    low.put(node, _bounded(low, node, node.input[0], 0.0, None))


def _layer(
    low: _Lowering, node: Any, x: Tensor, weights: Floats, biases: Floats, shape: tuple[int, ...]
) -> None:
    """Write a layer [outputs, inputs] for each group of inputs, with what is added and the relu."""
    names = [node.output[0]]
    after = low.only_user(names[-1], "Add")
    added = None if after is None else low.constant_of(after)
    if after is not None and added is not None and added[1].size == len(biases):
        biases = biases + added[1].ravel()
        names.append(after.output[0])
    rectified = low.only_user(names[-1], "Relu")
    relu = rectified is not None
    if rectified is not None:
        names.append(rectified.output[0])
    end = names[-1]
    outputs, inputs = weights.shape
    groups = x.n // inputs
    low.even_now |= set(names)
    x = low.out.even(x)
    qx = int(x.q[0])
    # A weight has 30 bits at most, and so have the weights of a sum together: with numbers of 31
    # bits no sum leaves 62.
    row = np.abs(weights).sum(axis=1).max() or 1.0
    qw = min(30, 29 - math.ceil(math.log2(row)))
    q = min(int(low.places(end, groups * outputs)[0]), qx + qw)
    while np.abs(biases).max(initial=0.0) * 2.0 ** (qx + qw) >= 2.0**60:
        qw -= 1
    shift = qx + qw - q
    if shift < 0 or shift > 62:
        raise NotLowerable("a layer's weights and inputs fit no integers")
    half = 1 << (shift - 1) if shift else 0
    tables = {
        "weights": np.floor(weights * 2.0**qw + 0.5).astype(np.int64),
        "biases": np.floor(biases * 2.0 ** (qx + qw) + 0.5).astype(np.int64) + half,
    }
    numbers = {
        "groups": groups, "inputs": inputs, "outputs": outputs, "shift": shift, "relu": int(relu)
    }  # fmt: skip
    found = low.out.emit("layer", shape, q, {"a": x}, numbers, tables)
    low.tensors |= dict.fromkeys(names, found)


def _gemm(low: _Lowering, node: Any) -> None:
    import onnx

    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.input[1] not in low.constants or attributes.get("transA"):
        raise NotLowerable(f"{node.op_type} of two tensors")
    weights = np.asarray(low.constants[node.input[1]], dtype=np.float64)
    weights = (weights if attributes.get("transB") else weights.T) * attributes.get("alpha", 1.0)
    biases = np.zeros(len(weights))
    if len(node.input) > 2:
        held = low.constant(node.input[2]).astype(np.float64).ravel()
        biases = biases + held * attributes.get("beta", 1.0)
    x = low.tensor(node.input[0])
    _layer(low, node, x, weights, biases, (*x.shape[:-1], len(weights)))


def _convolution(low: _Lowering, node: Any) -> None:
    """Convolution along one axis, as a layer for each place."""
    import onnx

    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    weights = low.constant(node.input[1]).astype(np.float64)
    padded = attributes.get("auto_pad", b"NOTSET") != b"NOTSET"
    if weights.ndim != 3 or attributes.get("group", 1) != 1 or padded:
        raise NotLowerable(
            "Conv has an integer form along one axis, of one group, without auto_pad"
        )
    biases = np.zeros(len(weights))
    if len(node.input) > 2:
        biases = low.constant(node.input[2]).astype(np.float64)
    x = low.tensor(node.input[0])
    batch, channels, length = x.shape
    before, after = attributes.get("pads", [0, 0])
    stride, spread = attributes.get("strides", [1])[0], attributes.get("dilations", [1])[0]
    taps = weights.shape[2]
    count = (length + before + after - spread * (taps - 1) - 1) // stride + 1
    at = np.arange(count)[:, None] * stride - before + np.arange(taps) * spread
    places = np.arange(channels)[None, :, None] * length + at[:, None, :]
    places = np.where(((at < 0) | (at >= length))[:, None, :], -1, places)
    rows = np.arange(batch)[:, None, None, None] * channels * length
    window = low.out.moved(x, np.where(places < 0, -1, rows + places))
    flat = weights.reshape(len(weights), -1)
    _layer(low, node, window, flat, biases, (batch, count, len(weights)))
    found = low.tensors[node.output[0]]
    order = np.arange(found.n).reshape(found.shape).transpose(0, 2, 1)
    turned = low.out.moved(found, order)
    for one in [n for n, tensor in low.tensors.items() if tensor is found]:
        low.tensors[one] = turned


def _reduce(low: _Lowering, node: Any) -> None:
    import onnx

    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    x = low.tensor(node.input[0])
    given = low.constant(node.input[1]) if len(node.input) > 1 else attributes.get("axes")
    axes = range(len(x.shape)) if given is None else np.asarray(given).ravel()
    over = sorted(int(axis) % len(x.shape) for axis in axes)
    rest = [axis for axis in range(len(x.shape)) if axis not in over]
    keep = attributes.get("keepdims", 1)
    shape = tuple(
        1 if axis in over else size for axis, size in enumerate(x.shape) if keep or axis not in over
    )
    k = math.prod(x.shape[axis] for axis in over)
    order = np.arange(x.n).reshape(x.shape).transpose(*rest, *over)
    name, kind = node.output[0], REDUCED[node.op_type]
    low._follow(name, node)
    x = low.out.even(low.out.moved(x, order))
    qx, n = int(x.q[0]), x.n // k
    if kind != "sum":
        low.put(node, low.out.emit(kind, shape, qx, {"a": x}, {"k": k}))
        return
    bits = low.wide(name)
    q = min(int(low.places(name, n, bits).min()), qx)
    by = k if node.op_type == "ReduceMean" else 1
    numbers = {"k": k, "by": by, "shift": qx - q, "bits": bits}
    low.put(node, low.out.emit("sum", shape, q, {"a": x}, numbers))


def _log(low: _Lowering, node: Any) -> None:
    x = low.tensor(node.input[0])
    q = int(min(PLACES, low.places(node.output[0], x.n).min()))
    add = np.floor(-x.q * math.log(2.0) * 2.0**PLACES + 0.5).astype(np.int64)
    low.put(node, low.out.emit("log", x.shape, q, {"a": x}, {"shift": PLACES - q}, {"add": add}))


def _exp(low: _Lowering, node: Any) -> None:
    """Exponentials of numbers that are never above 0: of those that their largest is taken off."""
    less = low.maker.get(node.input[0])
    most = None
    if less is not None and less.op_type == "Sub":
        most = low.maker.get(less.input[1])
    of = "" if most is None or most.op_type != "ReduceMax" else most.input[0]
    if less is None or of != less.input[0]:
        raise NotLowerable("Exp of numbers that may be above 0, outside of a Softmax")
    x = low.out.rescaled(low.tensor(node.input[0]), PLACES)
    low.put(node, low.out.emit("exp", x.shape, EXP_BITS, {"a": x}))


def _root(low: _Lowering, node: Any) -> None:
    x = low.out.even(low.tensor(node.input[0]))
    qx = int(x.q[0])
    up = 60 - x.bits
    up -= (qx + up) % 2
    low.put(node, low.out.emit("root", x.shape, (qx + up) // 2, {"a": x}, {"up": up}))


def _curved(low: _Lowering, node: Any) -> None:
    x = low.out.rescaled(low.tensor(node.input[0]), low.curve.places - 1)
    low.put(node, low.out.emit(node.op_type.lower(), x.shape, low.curve.q, {"a": x}))


def _concat(low: _Lowering, node: Any) -> None:
    axis = next(a.i for a in node.attribute if a.name == "axis")
    parts = [low.tensor(name) for name in node.input]
    order = [np.arange(part.n).reshape(part.shape) for part in parts]
    starts = np.cumsum([0, *(part.n for part in parts)])
    places = np.concatenate([o + s for o, s in zip(order, starts, strict=False)], axis=axis)
    q = int(min(part.q.min() for part in parts))
    name = node.output[0]
    low._follow(name, node)
    if name in low.even_now or places.size > FEW:
        q = min(q, int(low.places(name, places.size).min())) if q > MOST_PLACES else q
        wanted = [np.full(part.n, q, dtype=np.int64) for part in parts]
    else:
        wanted = [part.q for part in parts]
    buffer = low.out.buffer(int(starts[-1]))
    for part, fractions, start in zip(parts, wanted, starts, strict=False):
        low.out.line(part, 1.0, 0.0, fractions, into=(buffer, int(start)))
    whole = Tensor(buffer, 0, (int(starts[-1]),), np.concatenate(wanted))
    low.put(node, low.out.moved(whole, places))


HANDLERS: dict[str, Handler] = {
    "Abs": _abs,
    "Add": _linear,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _convolution,
    "Div": _linear,
    "Exp": _exp,
    "Gemm": _gemm,
    "Greater": _above,
    "Log": _log,
    "MatMul": _gemm,
    "Max": _extreme,
    "Min": _extreme,
    "Mul": _linear,
    **dict.fromkeys(REDUCED, _reduce),
    "Relu": _relu,
    "Sigmoid": _curved,
    "Sqrt": _root,
    "Sub": _linear,
    "Tanh": _curved,
}
"""Operator -> what writes it down."""
