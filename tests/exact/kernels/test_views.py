"""Structures that kernels read through a pointer: every kind of field, against what Python sees."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from softsurv.exact.entries import ADDRESS, LONG, entry
from softsurv.exact.kernels.views import (
    Flags,
    FloatCube,
    Floats,
    IntMatrix,
    Packed,
    address_of,
    call,
    floats_at,
    ints_at,
    pack,
    structure_of,
    view_at,
)
from softsurv.exact.kernels.words import higher, lower


class Inner(NamedTuple):
    weight: Floats
    scale: float
    count: int


class Outer(NamedTuple):
    label: IntMatrix
    inner: Inner
    cube: FloatCube
    marked: Flags
    on: bool
    address: int


@entry(Outer, ADDRESS)
def read_all(outer, out):
    """Every field, one number each."""
    numbers = floats_at(out, (9,))
    numbers[0] = outer.label[1, 2]
    numbers[1] = outer.inner.weight.sum()
    numbers[2] = outer.inner.scale
    numbers[3] = outer.inner.count
    numbers[4] = outer.cube[1, 0, 2] + outer.cube.shape[2]
    numbers[5] = outer.marked[1]
    numbers[6] = 1.0 if outer.on else 0.0
    numbers[7] = lower(outer.inner.scale, 1.0) + higher(2, outer.inner.count)
    outer.inner.weight[0] = 7.0


@entry(Outer, ADDRESS, LONG, float, returns=float)
def add_up(outer, rows, n, start):
    """Sum of numbers that lie elsewhere."""
    total = start
    for row in ints_at(rows, (n,)):
        total += outer.inner.weight[row]
    return total


@entry(Outer, ADDRESS)
def call_by_address(outer, out):
    """As `read_all`, through its address."""
    call(outer.address, (outer, out))


def structure(on):
    inner = Inner(np.array([0.5, 1.5, 3.0]), -2.5, 11)
    cube = np.arange(12.0).reshape(2, 2, 3)
    return Outer(np.arange(6, dtype=np.int32).reshape(2, 3), inner, cube, np.array([False, True]), on, read_all.address)


@pytest.mark.parametrize("reader", [read_all, call_by_address])
@pytest.mark.parametrize("on", [True, False])
def test_a_kernel_sees_what_python_sees(reader, on):
    outer, out = structure(on), np.zeros(9)
    reader(Packed(outer), out)
    np.testing.assert_array_equal(out, [5, 5, -2.5, 11, 11, 1, on, -2.5 + 11, 0])
    assert outer.inner.weight[0] == 7.0  # arrays are shared, not copied


def test_a_kernel_returns_a_number():
    rows = np.array([2, 0, 2], np.int32)
    assert add_up(Packed(structure(True)), rows, 3, 10.0) == 16.5


@pytest.mark.parametrize(
    "wrong", [np.arange(6).reshape(2, 3), np.zeros(6, np.int32), np.zeros((3, 2), np.int32).T, np.zeros((2, 3))]
)
def test_arrays_of_another_kind_are_refused(wrong):
    with pytest.raises(TypeError, match=r"Outer\.label must be"):
        Packed(structure(True)._replace(label=wrong))


@pytest.mark.parametrize("changed", ["label", "inner", "on", "all of them"])
def test_another_value_is_pointed_to(changed):
    packed, out = Packed(structure(True)), np.zeros(9)
    address, other = packed.address, structure(False)
    other = other._replace(
        label=np.full((4, 3), 8, np.int32), inner=Inner(np.array([2.0, 2.0]), 0.25, 3), cube=other.cube + 1.0
    )
    value = other if changed == "all of them" else packed.value._replace(**{changed: getattr(other, changed)})
    packed.take(value)
    assert packed.address == address
    assert packed.value is value
    assert packed.words.tolist() == Packed(value).words.tolist()
    read_all(packed, out)
    assert out[0] == value.label[1, 2]
    with pytest.raises(TypeError, match=r"Outer\.label must be"):
        packed.take(value._replace(label=np.zeros(3)))


outer_at = view_at(Outer)


@njit
def packed_by_a_kernel(outer, words):
    pack(outer, words)
    seen = outer_at(address_of(words))
    return seen.label[1, 2] + seen.inner.scale + seen.cube[1, 1, 2] + seen.on


@pytest.mark.parametrize("on", [True, False])
def test_a_kernel_packs_a_structure_as_python_does(on):
    outer = structure(on)
    packed = Packed(outer)
    words = np.zeros(packed.words.size, np.int64)
    assert packed_by_a_kernel(outer, words) == 5 - 2.5 + 11 + on
    assert words.tolist() == packed.words.tolist()
    assert [signature[0] for signature in packed_by_a_kernel.signatures] == [structure_of(Outer)]
