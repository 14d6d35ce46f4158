"""A vector of eight float64 inside compiled kernels, for loops over eight subsets of rows.

Numba vectorises long loops by itself; the loops over pairs of splits are short, and the remainder of a short loop runs
one number at a time. Here every number of such a loop is a vector: `load` and `store` move it from and to a flat array,
``+ - *`` and `smaller` work lane by lane. LLVM maps it to what the processor has (one AVX-512, two AVX2 or four NEON
registers).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import models, overload, register_model

from softsurv.exact.jit import intrinsic

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class Vector(types.Type):
    """Numba type of a vector of eight float64."""

    def __init__(self) -> None:
        super().__init__(name="Vector8")


vector = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    element = cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)
    return builder.bitcast(element, _VECTOR.as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """array[index : index + 8] as a vector."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *args), align=8)

    return vector(array, types.intp), generate


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index : index + 8] = value"""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def spread(typingctx: Any, number: Any) -> Any:
    """A vector with the number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    return vector(types.float64), generate


@intrinsic
def smaller(typingctx: Any, a: Any, b: Any) -> Any:
    """The smaller number of each lane (neither may be NaN)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return vector(vector, vector), generate


def _lane_by_lane(instruction: str) -> Callable[..., Any]:
    @intrinsic
    def operate(typingctx: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(*args)

        return vector(vector, vector), generate

    return operate


_add, _subtract, _multiply = (_lane_by_lane(name) for name in ("fadd", "fsub", "fmul"))


@overload(operator.add)
def _overload_add(a, b):
    if isinstance(a, Vector) and isinstance(b, Vector):
        return lambda a, b: _add(a, b)
    return None


@overload(operator.sub)
def _overload_subtract(a, b):
    if isinstance(a, Vector) and isinstance(b, Vector):
        return lambda a, b: _subtract(a, b)
    return None


@overload(operator.mul)
def _overload_multiply(a, b):
    if isinstance(a, Vector) and isinstance(b, Vector):
        return lambda a, b: _multiply(a, b)
    return None
