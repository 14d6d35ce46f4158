"""Vectors of eight numbers in compiled code, against numpy."""

import numpy as np
import pytest
from numba import njit
from oracles import plain_python

from softsurv.exact.kernels.simd import (
    LANES,
    as_numbers,
    count_both,
    gather,
    kept,
    larger,
    least,
    load,
    no_counts,
    smaller,
    spread,
    store,
    transpose,
)


@njit
def of_numbers(a, places, out):
    """Every operation once, from places that are not aligned; returns the least number."""
    x, y = load(a, 3), gather(a, places, 1)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * spread(-1.5))
    store(out, 24, smaller(x, y))
    store(out, 32, larger(x, y))
    store(out, 40, kept(x, y, spread(a[0])))
    return least(y)


@njit
def of_words(word, words, block, out):
    store(out, 0, as_numbers(count_both(count_both(no_counts(), word, words, 1), ~word, words, 2)))
    transpose(block)


def test_numbers_lane_by_lane():
    rng = np.random.default_rng(0)
    a, out = rng.normal(size=20), np.full(56, 9.0)
    places = rng.integers(0, 20, 10).astype(np.int32)
    places[3] = 0  # equal is enough
    found = of_numbers(a, places, out)
    x, y = a[3:11], a[places[1:9]]
    some = np.where(y >= a[0], x, 0.0)
    expected = np.concatenate([x + y, x - y, -1.5 * x, np.minimum(x, y), np.maximum(x, y), some, np.full(8, 9.0)])
    np.testing.assert_array_equal(out, expected)
    assert found == y.min()


def test_counts_and_the_transposed_block():
    rng = np.random.default_rng(1)
    words, block = (rng.integers(0, 2**64, n, dtype=np.uint64) for n in (12, 64))
    word, before, out = np.uint64(rng.integers(0, 2**64, dtype=np.uint64)), block.copy(), np.zeros(8)
    of_words(word, words, block, out)
    both = [int(words[1 + k] & word).bit_count() + int(words[2 + k] & ~word).bit_count() for k in range(8)]
    np.testing.assert_array_equal(out, both)
    for i in range(64):
        for j in range(64):
            assert (int(block[i]) >> j) & 1 == (int(before[j]) >> i) & 1


@pytest.mark.parametrize("seed", range(3))
def test_plain_forms_say_what_the_compiled_ones_do(seed):
    """The kernels' tests rest on these."""
    rng = np.random.default_rng(seed)
    a, words, block = rng.normal(size=20), *(rng.integers(0, 2**64, n, dtype=np.uint64) for n in (12, 64))
    places, word = rng.integers(0, 20, 10).astype(np.int32), words[0]
    compiled, by_numpy = np.zeros(48), np.zeros(48)
    numbers = plain_python.plain(of_numbers)
    assert of_numbers(a, places, compiled) == numbers(a, places, by_numpy)
    np.testing.assert_array_equal(compiled, by_numpy)
    turned = block.copy()
    of_words(word, words, block, compiled)
    plain_python.plain(of_words)(word, words, turned, by_numpy)
    np.testing.assert_array_equal(block, turned)
    np.testing.assert_array_equal(compiled[:LANES], by_numpy[:LANES])
