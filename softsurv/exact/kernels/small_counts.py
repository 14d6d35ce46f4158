"""A vector of 32 small counts inside compiled kernels: int16, where `simd.py` has eight float64.

Errors of up to `MOST` rows are counted so. LLVM maps a vector to what the processor has: one register of AVX-512, two
of AVX2, four of NEON.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import overload

from softsurv.exact.kernels.simd import Vector, everywhere, lane_by_lane, loading, place_of, storing
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


small = Vector("Small32", _SHORTS)
"""32 counts."""

load_small = loading(small, 2)
"""array[index : index + 32] of int16 as a vector."""

store_small = storing(small, 2)
"""array[index : index + 32] = value"""


@intrinsic
def spread_small(typingctx: Any, number: Any) -> Any:
    """A vector with a count in every lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return everywhere(_SHORTS, builder, builder.trunc(args[0], ir.IntType(SHORT)))

    return small(types.int64), generate


@intrinsic
def count_shared(typingctx: Any, before: Any, word: Any, array: Any, index: Any) -> Any:
    """before + the bits that a short word has in common with each of array[index : index + 32]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        before, word, array, index = args
        others = builder.load(place_of(_SHORTS, context, builder, signature.args[2], array, index), align=2)
        shared = builder.and_(everywhere(_SHORTS, builder, word), others)
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


fewer = lane_by_lane(small, lambda builder, a, b: builder.select(builder.icmp_signed("<", a, b), a, b))
"""The smaller count of each lane."""

more = lane_by_lane(small, lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b))
"""The larger count of each lane."""


@intrinsic
def allowed(typingctx: Any, errors: Any, size: Any, least: Any) -> Any:
    """The errors of each lane whose size is at least the least one, else `NOTHING`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        errors, size, least = args
        return builder.select(builder.icmp_signed(">=", size, least), errors, ir.Constant(_SHORTS, [NOTHING] * WIDE))

    return small(small, small, small), generate


_add, _subtract = (lane_by_lane(small, one) for one in (ir.IRBuilder.add, ir.IRBuilder.sub))


@overload(operator.add)
def _overload_add(a, b):
    if a == b == small:
        return lambda a, b: _add(a, b)
    return None


@overload(operator.sub)
def _overload_subtract(a, b):
    if a == b == small:
        return lambda a, b: _subtract(a, b)
    return None
