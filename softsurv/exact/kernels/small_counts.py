"""A vector of 32 small counts inside compiled kernels: int16, where `simd.py` has eight float64.

Errors of up to `MOST` rows are counted so. LLVM maps a vector to what the processor has: one register of AVX-512, two
of AVX2, four of NEON.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import models, overload, register_model

from softsurv.kernel_cache import intrinsic

WIDE = 32
"""Counts in a vector."""

SHORT = 16
"""Bits of a short word, and rows that it stands for."""

NOTHING = 2 ** (SHORT - 2) - 1
"""Stands for errors of what may not be; two of it still make a count."""

MOST = NOTHING - 1
"""Most rows whose errors are counted."""

_SHORTS = ir.VectorType(ir.IntType(SHORT), WIDE)


class Small(types.Type):
    """Numba type of a vector of 32 counts."""

    def __init__(self) -> None:
        super().__init__(name="Small32")


small = Small()


@register_model(Small)
class _SmallModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _SHORTS)


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    element = cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)
    return builder.bitcast(element, _SHORTS.as_pointer())


def _everywhere(builder: Any, number: Any) -> Any:
    undefined = ir.Constant(_SHORTS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE))


@intrinsic
def load_small(typingctx: Any, array: Any, index: Any) -> Any:
    """array[index : index + 32] of int16 as a vector."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return builder.load(_place(context, builder, signature.args[0], *args), align=2)

    return small(array, types.intp), generate


@intrinsic
def store_small(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index : index + 32] = value"""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        builder.store(args[2], _place(context, builder, signature.args[0], args[0], args[1]), align=2)
        return context.get_dummy_value()

    return types.void(array, types.intp, small), generate


@intrinsic
def spread_small(typingctx: Any, number: Any) -> Any:
    """A vector with a count in every lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return _everywhere(builder, builder.trunc(args[0], ir.IntType(SHORT)))

    return small(types.int64), generate


@intrinsic
def count_shared(typingctx: Any, before: Any, word: Any, array: Any, index: Any) -> Any:
    """before + the bits that a short word has in common with each of array[index : index + 32]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        before, word, array, index = args
        others = builder.load(_place(context, builder, signature.args[2], array, index), align=2)
        shared = builder.and_(_everywhere(builder, word), others)
        kind = ir.FunctionType(_SHORTS, [_SHORTS])
        bits = cgutils.get_or_insert_function(builder.module, kind, f"llvm.ctpop.v{WIDE}i{SHORT}")
        return builder.add(before, builder.call(bits, [shared]))

    return small(small, types.int16, array, types.intp), generate


@intrinsic
def least_small(typingctx: Any, a: Any) -> Any:
    """The least count of all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        half, found = WIDE, args[0]
        while half > 1:
            half //= 2
            order = [(k + half) % WIDE for k in range(WIDE)]
            turned = builder.shuffle_vector(found, found, ir.Constant(ir.VectorType(ir.IntType(32), WIDE), order))
            found = builder.select(builder.icmp_signed("<", found, turned), found, turned)
        return builder.sext(builder.extract_element(found, ir.Constant(ir.IntType(32), 0)), ir.IntType(64))

    return types.int64(small), generate


def _lane_by_lane(operate: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    @intrinsic
    def both(typingctx: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            """Machine code of the call."""
            return operate(builder, *args)

        return small(small, small), generate

    return both


fewer = _lane_by_lane(lambda builder, a, b: builder.select(builder.icmp_signed("<", a, b), a, b))
"""The smaller count of each lane."""

more = _lane_by_lane(lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b))
"""The larger count of each lane."""


@intrinsic
def allowed(typingctx: Any, errors: Any, size: Any, least: Any) -> Any:
    """The errors of each lane whose size is at least the least one, else `NOTHING`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        errors, size, least = args
        return builder.select(builder.icmp_signed(">=", size, least), errors, ir.Constant(_SHORTS, [NOTHING] * WIDE))

    return small(small, small, small), generate


_add, _subtract = (_lane_by_lane(one) for one in (ir.IRBuilder.add, ir.IRBuilder.sub))


@overload(operator.add)
def _overload_add(a, b):
    if isinstance(a, Small) and isinstance(b, Small):
        return lambda a, b: _add(a, b)
    return None


@overload(operator.sub)
def _overload_subtract(a, b):
    if isinstance(a, Small) and isinstance(b, Small):
        return lambda a, b: _subtract(a, b)
    return None
