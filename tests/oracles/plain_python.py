"""Compiled functions as plain Python: what a kernel says, without a compiler.

`plain` gives the body of a compiled function. The compiled functions that it calls are replaced by their bodies, and
numba's intrinsics by numpy. So a kernel runs over a few rows in milliseconds, where its compilation takes seconds.
"""

from __future__ import annotations

import functools
import types

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from softsurv.exact.entries import Entry
from softsurv.exact.kernels.small_counts import NOTHING
from softsurv.loops import Loop

LANES, WIDE = 8, 32


def plain(compiled, **instead):
    """The Python body of a compiled function.

    Parameters
    ----------
    compiled : function compiled by numba, an `Entry` or a `Loop`
    **instead
        Functions that take the place of those of the same names, wherever they are called.
    """
    body = _Bodies(instead).of(compiled)

    @functools.wraps(body)
    def silent(*arguments):
        with np.errstate(all="ignore"):  # compiled words overflow, and compiled zeros divide, without a warning
            return body(*arguments)

    return silent


class _Bodies:
    """Bodies of compiled functions, each made once."""

    def __init__(self, instead):
        self.instead, self.known = instead, {}

    def of(self, compiled):
        function = compiled.function if isinstance(compiled, Entry) else getattr(compiled, "py_func", compiled)
        if function not in self.known:
            names = dict(function.__globals__)
            cells = tuple(types.CellType(self._named("", cell.cell_contents)) for cell in function.__closure__ or ())
            twin = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
            self.known[function] = twin
            for name in _names_in(function.__code__):
                if name in names or name in self.instead:
                    names[name] = self._named(name, names.get(name))
        return self.known[function]

    def _named(self, name, value):
        if name in self.instead:
            return self.instead[name]
        if isinstance(value, _Intrinsic):
            return INTRINSICS[name]
        return self.of(value) if isinstance(value, (Dispatcher, Entry, Loop)) else value


def _names_in(code):
    """Names that a function reads, those of functions inside it included."""
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*(_names_in(one) for one in inner))


class Address:
    """The address of an array's first element, to which bytes can be added."""

    def __init__(self, array):
        self.flat = array.reshape(-1)

    def __add__(self, n_bytes):
        return Address(self.flat[n_bytes // self.flat.itemsize :])


def array_at(address, shape):
    """The array of a shape that begins at an address; a matrix may reach beyond the memory where it is not read."""
    flat = address.flat if isinstance(address, Address) else address.reshape(-1)
    if len(shape) == 1:
        return flat[: shape[0]]
    return np.lib.stride_tricks.as_strided(flat, shape, (shape[1] * flat.itemsize, flat.itemsize))


def call(function, arguments):
    """Call what stands in the place of an address."""
    return function(*arguments)


PACKED = {}
"""Structures by the address of the words that stand for them."""


def pack(value, words):
    PACKED[words.ctypes.data] = value


def view_of_words(address):
    return PACKED[address.flat.ctypes.data]


def load(array, at):
    return array[at : at + LANES].copy()


def store(array, at, value):
    array[at : at + LANES] = value


def count_both(before, word, array, at):
    return before + np.bitwise_count(array[at : at + LANES] & word).astype(np.int64)


def load_small(array, at):
    return array[at : at + WIDE].copy()


def store_small(array, at, value):
    array[at : at + WIDE] = value


def count_shared(before, word, array, at):
    shared = (array[at : at + WIDE] & word).view(np.uint16)
    return before + np.bitwise_count(shared).astype(np.int16)


def transpose(block):
    bits = (block[:64, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    block[:64] = (bits.T << np.arange(64, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)


def fetch_add(array, at, amount):
    before = array[at]
    array[at] += amount
    return before


def compare_and_swap(array, at, expected, new):
    same = array[at] == expected
    if same:
        array[at] = new
    return same


INTRINSICS = {
    "address_of": Address,
    "pack": pack,
    "table_at": view_of_words,
    "ints_at": array_at,
    "floats_at": array_at,
    "matrix_at": array_at,
    "call": call,
    "call_float": call,
    "load": load,
    "store": store,
    "spread": lambda number: np.full(LANES, float(number)),
    "smaller": np.minimum,
    "load_small": load_small,
    "store_small": store_small,
    "spread_small": lambda number: np.full(WIDE, number, np.int16),
    "count_shared": count_shared,
    "least_small": lambda counts: int(counts.min()),
    "fewer": np.minimum,
    "allowed": lambda errors, size, least: np.where(size >= least, errors, np.int16(NOTHING)),
    "more": np.maximum,
    "larger": np.maximum,
    "kept": lambda value, size, least: np.where(size >= least, value, 0.0),
    "gather": lambda array, places, at: array[places[at : at + LANES]],
    "least": lambda vector: vector.min(),
    "no_counts": lambda: np.zeros(LANES, np.int64),
    "count_both": count_both,
    "as_numbers": lambda counts: counts.astype(float),
    "transpose": transpose,
    "popcount": lambda word: int(np.bitwise_count(np.uint64(word))),
    "lower": min,
    "higher": max,
    "fetch_add": fetch_add,
    "compare_and_swap": compare_and_swap,
    "to_bits": lambda number: np.float64(number).view(np.int64),
    "from_bits": lambda word: np.int64(word).view(np.float64),
}
"""What stands for numba's intrinsics, by the names under which kernels know them."""
