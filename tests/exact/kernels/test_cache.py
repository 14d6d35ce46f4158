"""The cache of solved subsets: chains, limits, growth."""

import numpy as np
from numba import njit
from oracles.plain_python import plain

from softsurv.exact.kernels.cache import (
    ENTRY_BYTES,
    at_rest,
    find,
    forget,
    insert,
    new_cache,
    tag_of,
    with_heads,
    with_room,
)


@njit
def insert_and_find(cache, n):
    """Insert n entries under keys that share their chain, and count those found again."""
    found = 0
    for i in range(n):
        insert(cache, np.uint64(7), np.uint64(i), tag_of(2, 0), float(i), 0.0, 0.0, 0)
    for i in range(n):
        at = find(cache, np.uint64(7), np.uint64(i), tag_of(2, 0))
        if at >= 0 and cache.values[at, 0] == i:
            found += 1
    return found, find(cache, np.uint64(7), np.uint64(0), tag_of(3, 8))


def fill(cache, keys, tag, reserve=0):
    one = plain(insert)
    return [int(one(cache, low, high, tag, float(k), 0.0, 0.0, reserve)) for k, (low, high) in enumerate(keys)]


def values(cache, keys, tag):
    at = [plain(find)(cache, low, high, tag) for low, high in keys]
    return [float(cache.values[one, 0]) if one >= 0 else None for one in at]


def random_keys(n):
    return np.random.default_rng(0).integers(0, 2**64, (n, 2), dtype=np.uint64)


def test_cache_chains_and_tags():
    found, other_limits = insert_and_find(new_cache(1e6), 300)
    assert found == 300
    assert other_limits == -1


def test_full_cache_refuses_quietly():
    cache = new_cache(1024 * (ENTRY_BYTES + 2))
    found, _ = insert_and_find(cache, 2000)
    assert found == len(cache.tags)


def test_a_key_needs_both_words_and_its_tag():
    cache, keys = new_cache(1e5), random_keys(3)
    tag = plain(tag_of)(3, 4)
    fill(cache, keys, tag)
    assert values(cache, keys, tag) == [0.0, 1.0, 2.0]
    swapped = np.column_stack([keys[:, 0], keys[::-1, 1]])
    assert values(cache, swapped, tag) == [None, 1.0, None]
    assert values(cache, keys, plain(tag_of)(4, 4)) == [None] * 3
    assert len({int(plain(tag_of)(depth, leaves)) for depth in range(5) for leaves in range(5)}) == 25


def test_places_can_be_reserved():
    cache = new_cache(1024 * (ENTRY_BYTES + 2))
    at = fill(cache, random_keys(30), plain(tag_of)(2, 0), reserve=len(cache.tags) - 20)
    assert [one >= 0 for one in at] == [True] * 20 + [False] * 10


def test_more_heads_keep_every_entry_and_the_latest_of_a_key():
    cache, keys, tag = new_cache(2e6, expected=0.0), random_keys(200), plain(tag_of)(3, 4)
    fill(cache, keys, tag)
    plain(insert)(cache, *keys[5], tag, -1.0, 0.0, 0.0, 0)
    expected = [float(k) for k in range(200)]
    expected[5] = -1.0
    assert values(cache, keys, tag) == expected
    grown = with_heads(cache, 20_000)
    assert len(grown.heads) > len(cache.heads)
    assert values(grown, keys, tag) == expected
    assert with_heads(grown, 10.0) is grown


def test_what_is_forgotten_is_not_found():
    cache, keys, tag = new_cache(1e5), random_keys(4), plain(tag_of)(3, 4)
    fill(cache, keys, tag)
    forget(cache)
    assert values(cache, keys, tag) == [None] * 4
    assert fill(cache, keys[:1], tag) == [0]


def test_a_cache_at_rest_keeps_its_entries_and_no_room():
    cache, keys, tag = new_cache(1e6), random_keys(30), plain(tag_of)(3, 4)
    fill(cache, keys, tag)
    rested = at_rest(cache)
    assert len(rested.tags) == 30
    assert values(rested, keys, tag) == list(range(30))
    assert fill(rested, random_keys(31)[30:], tag) == [-1]
    awake = with_room(rested, 1e6)
    assert len(awake.tags) == len(cache.tags)
    assert values(awake, keys, tag) == list(range(30))
    assert fill(awake, random_keys(31)[30:], tag) == [30]


def test_a_cache_at_rest_is_left_where_there_is_no_room_for_it():
    cache, keys, tag = new_cache(1e6), random_keys(2000), plain(tag_of)(3, 4)
    fill(cache, keys, tag)
    awake = with_room(at_rest(cache), 0.0)
    assert len(awake.tags) == 1024
    assert awake.used[0] == 0
