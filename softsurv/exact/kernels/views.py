"""Structures of arrays that kernels read through one pointer.

Numba passes a tuple of arrays as several hundred numbers, and compiles each of them in each call. Here a structure is a
block of words: of each array its address and its shape, of a number its value. A kernel is given the address of the
block. The words do not change while a kernel runs, and the compiler is told so: it loads each of them once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import as_dtype

from softsurv.kernel_cache import intrinsic

Flags = Annotated[np.ndarray, types.Array(types.boolean, 1, "C")]
Bytes = Annotated[np.ndarray, types.Array(types.int8, 1, "C")]
ByteMatrix = Annotated[np.ndarray, types.Array(types.int8, 2, "C")]
Shorts = Annotated[np.ndarray, types.Array(types.int16, 1, "C")]
ShortMatrix = Annotated[np.ndarray, types.Array(types.int16, 2, "C")]
Ints = Annotated[np.ndarray, types.Array(types.int32, 1, "C")]
IntMatrix = Annotated[np.ndarray, types.Array(types.int32, 2, "C")]
Longs = Annotated[np.ndarray, types.Array(types.int64, 1, "C")]
LongMatrix = Annotated[np.ndarray, types.Array(types.int64, 2, "C")]
LongCube = Annotated[np.ndarray, types.Array(types.int64, 3, "C")]
Words = Annotated[np.ndarray, types.Array(types.uint64, 1, "C")]
WordMatrix = Annotated[np.ndarray, types.Array(types.uint64, 2, "C")]
WordCube = Annotated[np.ndarray, types.Array(types.uint64, 3, "C")]
Floats = Annotated[np.ndarray, types.Array(types.float64, 1, "C")]
FloatMatrix = Annotated[np.ndarray, types.Array(types.float64, 2, "C")]
FloatCube = Annotated[np.ndarray, types.Array(types.float64, 3, "C")]

WORD = 8
"""Bytes of a word."""

NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}


class View(types.Type):
    """Numba type of a pointer to the words of a structure."""

    def __init__(self, structure: type) -> None:
        super().__init__(name=f"View({structure.__name__})")
        self.structure = structure
        self.fields, self.n_words = _layout(structure)


@register_model(View)
class _ViewModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, cgutils.voidptr_t)


@unbox(View)
def _unbox(view: Any, packed: Any, c: Any) -> Any:
    """Pointer of a `Packed` that is given to a function compiled by numba alone."""
    address = c.pyapi.object_getattr_string(packed, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(pointer)


class _Field(NamedTuple):
    """A field: its first word, its numba type and, of an array, what numpy calls the type of an element."""

    at: int
    type: Any
    dtype: Any


@cache
def view_of(structure: Any) -> View:
    """The numba type of a view of a NamedTuple with arrays of this module's types, numbers, and such NamedTuples."""
    return View(structure)


def _layout(structure: type) -> tuple[dict[str, _Field], int]:
    fields, at = {}, 0
    for name, hint in get_type_hints(structure, include_extras=True).items():
        array = getattr(hint, "__metadata__", (None,))[0]
        if array is not None:
            kind, size = array, 1 + array.ndim
        elif hint in NUMBERS:
            kind, size = NUMBERS[hint], 1
        else:
            kind = view_of(hint)
            size = kind.n_words
        fields[name] = _Field(at, kind, as_dtype(array.dtype) if array is not None else None)
        at += size
    return fields, at


class Packed:
    """The words of a structure, with the arrays that they point to.

    Parameters
    ----------
    value : NamedTuple
        Arrays in C order with the types of the annotations.
    """

    def __init__(self, value: Any) -> None:
        structure: Any = type(value)
        self.value, self.view = value, view_of(structure)
        self.words = np.array(_words(value, self.view), np.int64)
        self.address = start_of(self.words)

    def take(self, value: Any) -> None:
        """Point to another value of the same structure; only the words of fields that differ are written."""
        for name, one, before in zip(value._fields, value, self.value, strict=True):
            if one is not before:
                field = self.view.fields[name]
                words = _words_of(type(value).__name__, name, field, one)
                self.words[field.at : field.at + len(words)] = words
        self.value = value


def start_of(array: np.ndarray) -> int:
    """Address of the first element."""
    if array.flags.writeable:
        memory: Any = array  # a buffer, which takes a quarter of the time that numpy takes to say its address
        return ctypes.addressof(_NOTHING.from_buffer(memory))
    address: int = array.__array_interface__["data"][0]
    return address


_NOTHING = ctypes.c_char * 0


@typeof_impl.register(Packed)
def _type_of(packed: Packed, context: Any) -> View:
    return packed.view


def _words(value: Any, view: View) -> list[int]:
    title, words = type(value).__name__, list[int]()
    for (name, field), one in zip(view.fields.items(), value, strict=True):
        words += _words_of(title, name, field, one)
    return words


def _words_of(structure: str, name: str, field: _Field, one: Any) -> Sequence[int]:
    kind = field.type
    if field.dtype is not None:
        if one.dtype != field.dtype or one.ndim != kind.ndim or not one.flags.c_contiguous:
            raise TypeError(f"{structure}.{name} must be {kind}, got {one.dtype} {one.shape}")
        return start_of(one), *one.shape
    if kind is types.float64:
        return _LONG.unpack(_DOUBLE.pack(one))
    return _words(one, kind) if isinstance(kind, View) else (int(one),)


_LONG, _DOUBLE = Struct("q"), Struct("d")


# -- inside kernels ------------------------------------------------------------------------------------------------
@infer_getattr
class _FieldOf(AttributeTemplate):
    key = View

    def generic_resolve(self, view: Any, name: str) -> Any:  # type: ignore[override]
        """Type of a field."""
        field = view.fields.get(name)
        return None if field is None else field.type


@lower_getattr_generic(View)
def _load_field(context: Any, builder: Any, view: Any, pointer: Any, name: str) -> Any:
    at, kind, _ = view.fields[name]
    if isinstance(kind, View):
        return builder.gep(pointer, [ir.Constant(ir.IntType(64), at * WORD)])
    words = builder.bitcast(pointer, _LONG_TYPE.as_pointer())
    if isinstance(kind, types.Array):
        data, *shape = (_load(builder, words, at + k) for k in range(1 + kind.ndim))
        return _array(context, builder, kind, data, shape)
    word = _load(builder, words, at)
    if kind is types.float64:
        return builder.bitcast(word, ir.DoubleType())
    return builder.trunc(word, ir.IntType(1)) if kind is types.boolean else word


_LONG_TYPE = ir.IntType(64)


def _load(builder: Any, words: Any, at: int) -> Any:
    """A word of a block, which no kernel writes to."""
    loaded = builder.load(builder.gep(words, [ir.Constant(_LONG_TYPE, at)]), align=WORD)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: Sequence[Any]) -> Any:
    """An array in C order, without reference counts."""
    model = context.data_model_manager[kind]
    element = context.get_data_type(kind.dtype)
    size = step = ir.Constant(_LONG_TYPE, context.get_abi_sizeof(element))
    array = ir.Constant(model.get_value_type(), None)
    for axis in reversed(range(kind.ndim)):
        array = builder.insert_value(array, shape[axis], [model.get_field_position("shape"), axis])
        array = builder.insert_value(array, step, [model.get_field_position("strides"), axis])
        step = builder.mul(step, shape[axis]) if axis else step
    length = shape[0]
    for more in shape[1:]:
        length = builder.mul(length, more)
    for name, value in (
        ("nitems", length),
        ("itemsize", size),
        ("data", builder.inttoptr(address, element.as_pointer())),
    ):
        array = builder.insert_value(array, value, model.get_field_position(name))
    return array


def structure_of(structure: Any) -> Any:
    """The numba type of the NamedTuple itself, as functions that own its arrays take it."""
    kinds = [structure_of(one.type.structure) if isinstance(one.type, View) else one.type for one in _fields(structure)]
    return types.NamedTuple(kinds, structure)


def _fields(structure: Any) -> list[_Field]:
    return list(view_of(structure).fields.values())


@intrinsic
def pack(typingctx: Any, value: Any, words: Any) -> Any:
    """Write a NamedTuple into words (`Packed` does it in Python), which can then be read through `view_at`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> None:
        kind, block = signature.args
        first = context.make_array(block)(context, builder, args[1]).data
        for at, word in enumerate(_words_in(context, builder, kind, args[0])):
            builder.store(word, builder.gep(first, [ir.Constant(_LONG_TYPE, at)]))

    return types.void(value, words), generate


def _words_in(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The words of a structure, as `_words` has them."""
    found = []
    for k, one in enumerate(kind.types):
        field = builder.extract_value(value, k)
        if isinstance(one, types.Array):
            array = context.make_array(one)(context, builder, field)
            found.append(builder.ptrtoint(array.data, _LONG_TYPE))
            found += cgutils.unpack_tuple(builder, array.shape, one.ndim)
        elif isinstance(one, types.BaseTuple):
            found += _words_in(context, builder, one, field)
        elif one is types.float64:
            found.append(builder.bitcast(field, _LONG_TYPE))
        else:
            found.append(builder.zext(field, _LONG_TYPE) if field.type.width < 64 else field)
    return found


def view_at(structure: Any) -> Any:
    """A function of kernels, view(address), that reads a structure from its words."""
    view = view_of(structure)

    @intrinsic
    def view_of_words(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], cgutils.voidptr_t)

        return view(types.int64), generate

    return view_of_words


@intrinsic
def address_of(typingctx: Any, array: Any) -> Any:
    """Address of the first element."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


def _array_at(kind: Any) -> Any:
    @intrinsic
    def array_at(typingctx: Any, address: Any, shape: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _array(context, builder, kind, args[0], cgutils.unpack_tuple(builder, args[1], kind.ndim))

        return kind(types.int64, types.UniTuple(types.int64, kind.ndim)), generate

    return array_at


ints_at = _array_at(types.Array(types.int32, 1, "C"))
floats_at = _array_at(types.Array(types.float64, 1, "C"))
matrix_at = _array_at(types.Array(types.float64, 2, "C"))


def _call(result: Any) -> Any:
    @intrinsic
    def call(typingctx: Any, address: Any, arguments: Any) -> Any:
        """Call the compiled function at an address with a tuple of arguments."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = cgutils.unpack_tuple(builder, args[1])
            kinds = [context.get_value_type(kind) for kind in signature.args[1].types]
            function = ir.FunctionType(context.get_value_type(result), kinds)
            return builder.call(builder.inttoptr(args[0], function.as_pointer()), values)

        return result(types.int64, arguments), generate

    return call


call = _call(types.void)
"""call(address, (argument, ...)): call a compiled entry (`entries.Entry`) whose arguments have exactly these types."""

call_float = _call(types.float64)
"""The same for an entry that returns a float."""
