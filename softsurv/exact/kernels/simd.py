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

from softsurv.kernel_cache import intrinsic

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class Vector(types.Type):
    """Numba type of a vector of some shape in LLVM."""

    def __init__(self, name: str, shape: Any) -> None:
        super().__init__(name=name)
        self.shape = shape


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, numba_type.shape)


vector = Vector("Vector8", _VECTOR)
"""Eight float64."""


def place_of(shape: Any, context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Address of array[index] as that of a vector of some shape."""
    view = context.make_array(array_type)(context, builder, array)
    element = cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)
    return builder.bitcast(element, shape.as_pointer())


def everywhere(shape: Any, builder: Any, number: Any) -> Any:
    """A vector of some shape with a number in every lane."""
    undefined = ir.Constant(shape, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    lanes = ir.VectorType(ir.IntType(32), shape.count)
    return builder.shuffle_vector(first, undefined, ir.Constant(lanes, [0] * shape.count))


def loading(kind: Vector, align: int) -> Callable[..., Any]:
    """A function of an array and an index: the numbers from there on as a vector."""

    @intrinsic
    def load(typingctx: Any, array: Any, index: Any) -> Any:
        """array[index : index + lanes] as a vector."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            """Machine code of the call."""
            return builder.load(place_of(kind.shape, context, builder, signature.args[0], *args), align=align)

        return kind(array, types.intp), generate

    return load


def storing(kind: Vector, align: int) -> Callable[..., Any]:
    """A function of an array, an index and a vector that is written there."""

    @intrinsic
    def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        """array[index : index + lanes] = value"""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            """Machine code of the call."""
            place = place_of(kind.shape, context, builder, signature.args[0], args[0], args[1])
            builder.store(args[2], place, align=align)
            return context.get_dummy_value()

        return types.void(array, types.intp, kind), generate

    return store


def lane_by_lane(kind: Vector, operate: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """A function of two vectors from one of a builder and their machine code."""

    @intrinsic
    def both(typingctx: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            """Machine code of the call."""
            return operate(builder, *args)

        return kind(kind, kind), generate

    return both


load = loading(vector, 8)
"""array[index : index + 8] as a vector."""

store = storing(vector, 8)
"""array[index : index + 8] = value"""


@intrinsic
def spread(typingctx: Any, number: Any) -> Any:
    """A vector with the number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return everywhere(_VECTOR, builder, args[0])

    return vector(types.float64), generate


smaller = lane_by_lane(vector, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))
"""The smaller number of each lane (neither may be NaN)."""

larger = lane_by_lane(vector, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
"""The larger number of each lane (neither may be NaN)."""


@intrinsic
def kept(typingctx: Any, value: Any, size: Any, least: Any) -> Any:
    """The value of each lane whose size is at least the least one, else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        value, size, least = args
        return builder.select(builder.fcmp_ordered(">=", size, least), value, ir.Constant(_VECTOR, [0.0] * LANES))

    return vector(vector, vector, vector), generate


@intrinsic
def gather(typingctx: Any, array: Any, places: Any, index: Any) -> Any:
    """The numbers of an array at places[index : index + 8], int32, as a vector."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        values, places, index = args
        view = context.make_array(signature.args[0])(context, builder, values)
        at = context.make_array(signature.args[1])(context, builder, places)
        found = ir.Constant(_VECTOR, ir.Undefined)
        for k in range(LANES):
            place = cgutils.get_item_pointer(
                context, builder, signature.args[1], at, [builder.add(index, ir.Constant(ir.IntType(64), k))],
                wraparound=False,
            )  # fmt: skip
            row = builder.sext(builder.load(place), ir.IntType(64))
            value = cgutils.get_item_pointer(context, builder, signature.args[0], view, [row], wraparound=False)
            found = builder.insert_element(found, builder.load(value), ir.Constant(ir.IntType(32), k))
        return found

    return vector(array, places, types.intp), generate


@intrinsic
def least(typingctx: Any, a: Any) -> Any:
    """The least number of all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        lanes = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), k)) for k in range(LANES)]
        while len(lanes) > 1:
            pairs = zip(lanes[::2], lanes[1::2], strict=True)
            lanes = [builder.select(builder.fcmp_ordered("<", x, y), x, y) for x, y in pairs]
        return lanes[0]

    return types.float64(vector), generate


_add, _subtract, _multiply = (
    lane_by_lane(vector, one) for one in (ir.IRBuilder.fadd, ir.IRBuilder.fsub, ir.IRBuilder.fmul)
)


@overload(operator.add)
def _overload_add(a, b):
    if a == b == vector:
        return lambda a, b: _add(a, b)
    return None


@overload(operator.sub)
def _overload_subtract(a, b):
    if a == b == vector:
        return lambda a, b: _subtract(a, b)
    return None


@overload(operator.mul)
def _overload_multiply(a, b):
    if a == b == vector:
        return lambda a, b: _multiply(a, b)
    return None


# -- population counts ---------------------------------------------------------------------------------------------
_WORDS = ir.VectorType(ir.IntType(64), LANES)


counts = Vector("Counts8", _WORDS)
"""Eight counts."""


@intrinsic
def no_counts(typingctx: Any) -> Any:
    """Eight zeros."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return ir.Constant(_WORDS, [0] * LANES)

    return counts(), generate


@intrinsic
def count_both(typingctx: Any, before: Any, word: Any, array: Any, index: Any) -> Any:
    """before + the bits that a word has in common with each of array[index : index + 8]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        before, word, array, index = args
        others = builder.load(place_of(_WORDS, context, builder, signature.args[2], array, index), align=8)
        both = builder.and_(everywhere(_WORDS, builder, word), others)
        bits = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORDS, [_WORDS]), f"llvm.ctpop.v{LANES}i64"
        )
        return builder.add(before, builder.call(bits, [both]))

    return counts(counts, types.uint64, array, types.intp), generate


@intrinsic
def as_numbers(typingctx: Any, number: Any) -> Any:
    """Eight counts as float64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return builder.uitofp(args[0], _VECTOR)

    return vector(counts), generate


@intrinsic
def transpose(typingctx: Any, block: Any) -> Any:
    """Turn the 64 by 64 bits of block[:64] round: bit j of word i becomes bit i of word j.

    Swaps quadrants of halving size (Warren, Hacker's Delight, section 7-3), eight words at a time: for quadrants of
    less than eight words the words to be swapped are first sorted into two vectors.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        view = context.make_array(signature.args[0])(context, builder, args[0])
        places = [
            builder.bitcast(
                cgutils.get_item_pointer(
                    context, builder, signature.args[0], view, [ir.Constant(ir.IntType(64), 8 * k)], wraparound=False
                ),
                _WORDS.as_pointer(),
            )
            for k in range(8)
        ]
        words = [builder.load(place, align=8) for place in places]
        for j, mask in ((32, 0x00000000FFFFFFFF), (16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF)):
            for k in range(8):
                if not k & (j // 8):
                    words[k], words[k + j // 8] = _swap(builder, words[k], words[k + j // 8], j, mask)
        for j, mask in ((4, 0x0F0F0F0F0F0F0F0F), (2, 0x3333333333333333), (1, 0x5555555555555555)):
            low = [k for k in range(16) if not k & j]
            high = [k for k in range(16) if k & j]
            back = sorted(range(16), key=lambda k: (low + high)[k])
            for k in range(0, 8, 2):
                first = _shuffle(builder, words[k], words[k + 1], low)
                second = _shuffle(builder, words[k], words[k + 1], high)
                first, second = _swap(builder, first, second, j, mask)
                words[k] = _shuffle(builder, first, second, back[:8])
                words[k + 1] = _shuffle(builder, first, second, back[8:])
        for place, word in zip(places, words, strict=True):
            builder.store(word, place, align=8)
        return context.get_dummy_value()

    return types.void(block), generate


def _swap(builder: Any, first: Any, second: Any, j: int, mask: int) -> tuple[Any, Any]:
    """Exchange the upper bits under ``mask << j`` of the first words with the lower ones of the second."""
    shift, keep = ir.Constant(_WORDS, [j] * LANES), ir.Constant(_WORDS, [mask] * LANES)
    moved = builder.and_(builder.xor(builder.lshr(first, shift), second), keep)
    return builder.xor(first, builder.shl(moved, shift)), builder.xor(second, moved)


def _shuffle(builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes))
