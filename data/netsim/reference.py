"""Passing the state by reference: one pointer instead of a hundred words per call.

numba passes a tuple of arrays by value and counts references to each array. `reference` keeps
the tuple where it is and hands out a pointer; its arrays are read through it, uncounted, for
the caller owns them. With the JIT off a state is passed as it is.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model
from numba.extending import lower_getattr_generic as _lower_getattr_generic

from data.netsim.jit import JIT_OFF

# numba's own functions have no types.
cgutils: Any = _cgutils
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
def _refer(typing: Any, state: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = cgutils.alloca_once_value(builder, arguments[0])
        return builder.bitcast(place, ir.IntType(8).as_pointer())

    return Reference(state)(state), codegen


def _itself(state: Any) -> Any:
    return state


reference: Any = _itself if JIT_OFF else _refer
"""Reference to a state that stays valid while the calling function runs."""
