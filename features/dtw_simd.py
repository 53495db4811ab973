"""The inner loop of batched DTW as explicit SIMD code, made at run time for the CPU at hand.

numba's scalar loop leaves the minimum of three unvectorised, and the cells of one pair form a
dependency chain. So a vector holds the same cell of ``LANES`` pairs, and the function below is
written in LLVM's vector instructions through llvmlite, which numba brings along: no compiler is
needed, and LLVM splits the vectors itself if a CPU has narrower registers.

A *strip* is ``ROWS`` rows of the cost matrix computed together, column by column, with the
cells to the left kept in registers: one load and one store of the row buffer serve ``ROWS`` cells.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]

ROWS = 4
"""Rows of a strip: enough independent cells in flight to hide the latency of minimum and sum."""

PAD = 1e150
"""Value of padding points: free against each other, 1e300 against a real one."""


def _host_lanes() -> int:
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx2") else 2


LANES = _host_lanes()
"""Pairs side by side: doubles in one register of this CPU. Results don't depend on it."""

_DOUBLE = ir.DoubleType()
_INDEX = ir.IntType(64)


def _pointer(builder: Any, address: Any, offset: Any, vector: Any) -> Any:
    """Pointer to the ``offset``-th vector after the scalar pointer ``address``."""
    scaled = builder.mul(offset, _INDEX(LANES))
    return builder.bitcast(builder.gep(address, [scaled]), vector.as_pointer())


def _minimum(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def _strip(
    typing_context: Any, a: Any, b: Any, row: Any, columns: Any, dims: Any, first: Any
) -> Any:
    """Advance the row buffer by ``ROWS`` rows, for ``LANES`` pairs at once.

    Parameters
    ----------
    a : address of float64 array [ROWS, dims, LANES]
        The rows' values.
    b : address of float64 array [columns, dims, LANES]
        All columns' values.
    row : address of float64 array [columns, LANES]
        Row above the strip on entry, the strip's last row on return.
    columns : int64
        Number of columns, at least 1.
    dims : literal int
        Dimensions of a point.
    first : float64
        Accumulated cost diagonally before the strip's first cell: 0 at the top, else infinity.
    """
    if not isinstance(dims, types.IntegerLiteral):
        return None
    width = dims.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a_ptr, b_ptr, row_ptr = (
            builder.inttoptr(address, _DOUBLE.as_pointer()) for address in arguments[:3]
        )
        count, _, corner = arguments[3:]
        vector = ir.VectorType(_DOUBLE, LANES)

        def load(address: Any, offset: Any) -> Any:
            return builder.load(_pointer(builder, address, offset, vector), align=8)

        infinity = ir.Constant(vector, [ir.Constant(_DOUBLE, float("inf"))] * LANES)
        lane0 = builder.insert_element(ir.Constant(vector, ir.Undefined), corner, ir.IntType(32)(0))
        corners = builder.shuffle_vector(
            lane0,
            ir.Constant(vector, ir.Undefined),
            ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES),
        )
        points = [[load(a_ptr, _INDEX(r * width + k)) for k in range(width)] for r in range(ROWS)]
        entry = builder.block
        body = builder.append_basic_block("column")
        done = builder.append_basic_block("done")
        builder.branch(body)

        builder.position_at_end(body)
        j = builder.phi(_INDEX)
        above_left = builder.phi(vector)
        lefts = [builder.phi(vector) for _ in range(ROWS)]
        values = [
            load(b_ptr, builder.add(builder.mul(j, _INDEX(width)), _INDEX(k))) for k in range(width)
        ]
        above = load(row_ptr, j)
        up, diagonal = above, above_left
        cells = []
        for r in range(ROWS):
            cost = None
            for k in range(width):
                difference = builder.fsub(points[r][k], values[k])
                square = builder.fmul(difference, difference)
                cost = square if cost is None else builder.fadd(cost, square)
            # left last: the chain along the row is then one minimum and one addition long
            best = _minimum(builder, _minimum(builder, diagonal, up), lefts[r])
            cell = builder.fadd(best, cost)
            cells.append(cell)
            up, diagonal = cell, lefts[r]
        builder.store(cells[-1], _pointer(builder, row_ptr, j, vector), align=8)
        following = builder.add(j, _INDEX(1))
        j.add_incoming(_INDEX(0), entry)
        j.add_incoming(following, body)
        above_left.add_incoming(corners, entry)
        above_left.add_incoming(above, body)
        for phi, cell in zip(lefts, cells, strict=True):
            phi.add_incoming(infinity, entry)
            phi.add_incoming(cell, body)
        builder.cbranch(builder.icmp_signed("<", following, count), body, done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    address = types.uintp
    return types.void(address, address, address, types.int64, dims, types.float64), codegen


strip: Any = intrinsic(_strip)
"""``_strip`` as a function that compiled code calls."""


@numba.njit(cache=True, nogil=True)
def squared_distances(
    a: Float, a_start: Int, a_length: Int, b: Float, b_start: Int, b_length: Int, order: Int
) -> Float:
    """Squared DTW distances of many pairs, ``LANES`` of them at a time.

    Parameters
    ----------
    a, b : float64 array [points, dims]
        All first (second) series one after another; dims 1 to 3.
    a_start, a_length, b_start, b_length : int64 array [pairs]
        Where each series lies in ``a`` (``b``).
    order : int64 array [pairs]
        Pairs as they are to be packed: neighbours share a vector.

    Returns
    -------
    float64 array [pairs]
        In the order of ``a_start``.

    Notes
    -----
    Shorter pairs of a pack are padded by points at ``PAD``: going from the last real cell
    diagonally into the padding is free, every other way into it costs more than any real path.
    """
    pairs, dims = order.size, a.shape[1]
    out = np.empty(pairs)
    for pack in range(0, pairs, LANES):
        lanes = min(LANES, pairs - pack)
        members = order[pack : pack + lanes]
        rows, columns = 0, 0
        for p in members:
            rows, columns = max(rows, a_length[p]), max(columns, b_length[p])
        even = rows % ROWS == 0
        for p in members:
            even = even and a_length[p] == rows and b_length[p] == columns
        if not even:
            rows = (rows // ROWS + 1) * ROWS
            columns += 1
        left = np.full((rows, dims, LANES), PAD)
        top = np.full((columns, dims, LANES), PAD)
        for lane in range(lanes):
            p = members[lane]
            for i in range(a_length[p]):
                for k in range(dims):
                    left[i, k, lane] = a[a_start[p] + i, k]
            for j in range(b_length[p]):
                for k in range(dims):
                    top[j, k, lane] = b[b_start[p] + j, k]
        row = np.full((columns, LANES), np.inf)
        corner = 0.0
        for i in range(0, rows, ROWS):
            here = left[i:].ctypes.data
            if dims == 1:
                strip(here, top.ctypes.data, row.ctypes.data, columns, 1, corner)
            elif dims == 2:
                strip(here, top.ctypes.data, row.ctypes.data, columns, 2, corner)
            else:
                strip(here, top.ctypes.data, row.ctypes.data, columns, 3, corner)
            corner = np.inf
        for lane in range(lanes):
            out[members[lane]] = row[columns - 1, lane]
    return out
