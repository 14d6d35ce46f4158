"""The names of array types mean what signatures say: double precision, 64-bit whole numbers, one byte for a truth."""

import typing

import numpy as np
import pytest

from softsurv import arrays


@pytest.mark.parametrize(
    ("name", "kind", "bits"), [("FloatArray", "f", 64), ("IntArray", "i", 64), ("BoolArray", "b", 8)]
)
def test_a_name_is_an_array_of_one_type(name, kind, bits):
    array = getattr(arrays, name)
    assert typing.get_origin(array) is np.ndarray
    (scalar,) = typing.get_args(typing.get_args(array)[1])
    dtype = np.dtype(scalar)
    assert (dtype.kind, 8 * dtype.itemsize) == (kind, bits)


def test_a_time_is_a_number_or_nan():
    assert arrays.as_time("12.5") == arrays.as_time(np.array(12.5)) == 12.5
    assert all(np.isnan(arrays.as_time(value)) for value in ("a year", None, [1.0, 2.0], 10**400))
