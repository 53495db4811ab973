"""Passing the state by reference: one pointer instead of a hundred words per call.

numba passes a tuple of arrays by value and counts references to each array. `pinned` puts the
tuple somewhere once; compiled code is called with its address and reads the arrays through it,
uncounted, for the caller owns them. So many simulations are one array of addresses, and a call
costs the same however large a state is. With the JIT off a state stands for its address.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof as _typeof
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model
from numba.extending import lower_getattr_generic as _lower_getattr_generic

from data.netsim.jit import JIT_OFF, entry
from data.netsim.state import example

PINNED_BYTES = 4096
"""Memory that a state's own record takes at most: the places and lengths of its arrays."""

# numba's own functions have no types.
cgutils: Any = _cgutils
typeof: Any = _typeof
lower_getattr_generic: Any = _lower_getattr_generic


class Reference(types.Type):
    """numba type of a reference to a named tuple of contiguous arrays and records."""

    def __init__(self, target: Any) -> None:
        self.target = target
        digest = hashlib.sha256(target.name.encode()).hexdigest()[:16]
        super().__init__(name=f"netsim.Reference({digest})")


@register_model(Reference)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(8).as_pointer())  # type: ignore[no-untyped-call]


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        if name in kind.target.fields:
            return kind.target.types[kind.target.fields.index(name)]
        return None


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def _getattr(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    pointer = builder.bitcast(value, context.get_value_type(kind.target).as_pointer())
    index = kind.target.fields.index(name)
    member = kind.target.types[index]
    place = cgutils.gep_inbounds(builder, pointer, 0, index)
    if not isinstance(member, types.Array):
        return builder.load(place)
    proxy = context.make_array(member)
    source = proxy(context, builder, ref=place)
    result = proxy(context, builder)
    result.data = source.data
    result.shape = source.shape
    result.strides = source.strides
    result.nitems = source.nitems
    result.itemsize = source.itemsize
    result.meminfo = cgutils.get_null_value(result.meminfo.type)
    result.parent = cgutils.get_null_value(result.parent.type)
    return result._getvalue()


@intrinsic
def _refer(typing: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return Reference(typeof(example()))(types.int64), codegen


@intrinsic
def _put(typing: Any, state: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.args[0])
        if context.get_abi_sizeof(kind) > PINNED_BYTES:
            raise ValueError("a state takes more than PINNED_BYTES")
        builder.store(arguments[0], builder.inttoptr(arguments[1], kind.as_pointer()))
        return context.get_dummy_value()

    return types.void(state, types.int64), codegen


@intrinsic
def _call(typing: Any, function: Any, address: Any, until: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word, word])
        place = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(place, arguments[1:])

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def _add(typing: Any, array: Any, place: Any, number: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        where = builder.gep(data, [arguments[1]])
        # What a thread wrote before it added is seen by whoever reads the sum.
        return builder.atomic_rmw("add", where, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), codegen


# To a type checker an intrinsic takes what its first function takes.
put: Any = _put


@entry
def _pin(state: Any, address: int) -> None:
    put(state, address)


def pinned(state: Any, memory: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    """Put a state into memory where it stays; needed again whenever one of its arrays is replaced.

    Parameters
    ----------
    state : State
        The caller keeps it as long as its address is used.
    memory : int64 array [PINNED_BYTES / 8]
        Kept by the caller, too.

    Returns
    -------
    int
        The address; the state itself if nothing is compiled.
    """
    if JIT_OFF:
        return state
    address = int(memory.ctypes.data)
    _pin(state, address)
    return address


def _itself(state: Any) -> Any:
    return state


def _interpreted(function: Any, address: Any, until: int) -> Any:
    return function(address, until)


def _added(array: Any, place: int, number: int) -> int:
    before = int(array[place])
    array[place] += number
    return before


reference: Any = _itself if JIT_OFF else _refer
"""Reference to the state at an address."""
call: Any = _interpreted if JIT_OFF else _call
"""Call an entry point like `data.netsim.event_loop.advance` by its `data.netsim.jit.pointer`."""
add: Any = _added if JIT_OFF else _add
"""Add a number at a place of an int64 array that threads share; what stood there before."""
