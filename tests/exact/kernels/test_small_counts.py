"""Vectors of 32 small counts in compiled code, against numpy."""

import numpy as np
import pytest
from numba import njit
from oracles import plain_python

from softsurv.exact.kernels.small_counts import (
    MOST,
    NOTHING,
    WIDE,
    allowed,
    count_shared,
    fewer,
    least_small,
    load_small,
    more,
    spread_small,
    store_small,
)


@njit
def of_counts(a, b, out):
    """Every operation once, from places that are not aligned; returns the least count."""
    x, y = load_small(a, 3), load_small(b, 1)
    store_small(out, 0, x + y)
    store_small(out, 32, x - y)
    store_small(out, 64, fewer(x, y))
    store_small(out, 96, more(x, y))
    store_small(out, 128, spread_small(np.int64(a[0])))
    store_small(out, 160, allowed(x, y, spread_small(np.int64(b[1]))))
    return least_small(y)


@njit
def of_words(words, out):
    found = count_shared(spread_small(np.int64(7)), words[0], words, 1)
    store_small(out, 0, count_shared(found, words[5], words, 2))


def numbers(seed, least=-MOST // 2, most=MOST // 2):
    rng = np.random.default_rng(seed)
    return [rng.integers(least, most, 40).astype(np.int16) for _ in range(2)]


def test_counts_lane_by_lane():
    a, b = numbers(0)
    out = np.full(232, 9, np.int16)
    found = of_counts(a, b, out)
    x, y = a[3:35], b[1:33]
    some = np.where(y >= b[1], x, NOTHING)
    lanes = [x + y, x - y, np.minimum(x, y), np.maximum(x, y), np.full(WIDE, a[0]), some, np.full(40, 9)]
    np.testing.assert_array_equal(out, np.concatenate(lanes))
    assert found == y.min()


@pytest.mark.parametrize("place", [0, 1, 15, 16, 31])
def test_the_least_count_is_found_in_every_lane(place):
    a, b = numbers(1, 0, MOST)
    b[1 + place] = -5
    assert of_counts(a, b, np.zeros(192, np.int16)) == -5


def test_bits_that_words_share():
    words, _ = numbers(2, -MOST - 1, MOST + 1)
    out = np.zeros(32, np.int16)
    of_words(words, out)
    bits = words.view(np.uint16)
    assert out.tolist() == [
        7 + int(bits[0] & bits[1 + k]).bit_count() + int(bits[5] & bits[2 + k]).bit_count() for k in range(WIDE)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_plain_forms_say_what_the_compiled_ones_do(seed):
    """The kernels' tests rest on these."""
    a, b = numbers(seed)
    compiled, by_numpy = np.zeros(192, np.int16), np.zeros(192, np.int16)
    assert of_counts(a, b, compiled) == plain_python.plain(of_counts)(a, b, by_numpy)
    np.testing.assert_array_equal(compiled, by_numpy)
    of_words(a, compiled)
    plain_python.plain(of_words)(a, by_numpy)
    np.testing.assert_array_equal(compiled, by_numpy)
