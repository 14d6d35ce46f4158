"""Bits of words, and the smaller and larger of two numbers, in compiled code."""

import numpy as np
import pytest
from numba import njit

from softsurv.exact.kernels.words import higher, lower, popcount


@njit
def counted(word):
    return popcount(word)


@njit
def both(a, b):
    return lower(a, b), higher(a, b)


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF])
def test_bits_of_a_word(word):
    assert counted(np.uint64(word)) == word.bit_count()


@pytest.mark.parametrize(("a", "b"), [(2, 3), (-1, -5), (2**62, 2**62 + 1), (0.5, 0.25), (-np.inf, np.inf), (3, 2.5)])
def test_the_smaller_and_the_larger(a, b):
    assert both(a, b) == (min(a, b), max(a, b))
    assert both(b, a) == (min(a, b), max(a, b))


def test_whole_numbers_stay_whole():
    assert isinstance(both(2**53 + 1, 2)[1], int)
    assert both(2**53 + 1, 2)[1] == 2**53 + 1
