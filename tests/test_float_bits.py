"""Bits of floats in compiled code against numpy's view of the same memory."""

import numpy as np

from softsurv.float_bits import from_bits, to_bits
from softsurv.kernel_cache import njit

VALUES = [0.0, -0.0, 1.0, -2.5, 5e-324, np.finfo(float).max, np.inf, -np.inf, np.nan]


@njit()
def round_trip(values):
    bits, back = np.empty(values.size, np.int64), np.empty(values.size)
    for k in range(values.size):
        bits[k] = to_bits(values[k])
        back[k] = from_bits(bits[k])
    return bits, back


def test_bits_are_those_in_memory_and_lead_back():
    values = np.array([*VALUES, *np.random.default_rng(0).standard_normal(50)])
    bits, back = round_trip(values)
    np.testing.assert_array_equal(bits, values.view(np.int64))
    np.testing.assert_array_equal(back.view(np.int64), values.view(np.int64))  # the sign of 0 and nan's bits too
