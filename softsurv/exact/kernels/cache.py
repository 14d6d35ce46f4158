"""The cache of solved subsets: compiled, shared by threads without locks.

A subset of rows is known by the 128-bit sum (modulo 2**64 in each half) of random words drawn once per row, so that
adding or removing rows updates the key. Two different subsets share a key with probability 2**-128; with 10**9
subsets the chance of any clash is below 10**-20, far below that of a memory fault.

Entries are appended to an arena and chained from a table of heads. An entry is complete before the
compare-and-swap that publishes it, and later updates write single 8-byte words, so readers need no lock. A full
arena takes no more entries: the search stays exact, only slower.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.views import FloatMatrix, Ints, Longs, WordMatrix
from softsurv.kernel_cache import intrinsic, njit

ENTRY_BYTES = 16 + 4 + 4 + 24
MAX_LEAVES = 1 << 12  # leaves are packed beside depth in one tag


class Cache(NamedTuple):
    """Arrays of the cache; C entries, H heads (a power of two)."""

    heads: Ints  # (H,) int32 first entry of each chain plus 1, 0 where empty
    keys: WordMatrix  # (C, 2) uint64
    following: Ints  # (C,) int32 next entry of the chain plus 1
    tags: Ints  # (C,) int32 depth and leaves of the subproblem
    values: FloatMatrix  # (C, 3) float64: see `nodes.py`, and `listing.py` for fronts
    used: Longs  # (1,) int64 entries taken


PER_ENTRY = ("keys", "following", "tags", "values")
"""Arrays with a row for each entry."""


def new_cache(memory_bytes: float, expected: float = math.inf) -> Cache:
    """Room for as many entries as the memory allows; the pages are taken from the system only when written.

    The table of heads is written all over, so it is made for the ``expected`` entries; `with_heads` lets it grow.
    """
    capacity = int(max(1024, min(memory_bytes / (ENTRY_BYTES + 2), 2**31 - 2)))
    return Cache(
        np.zeros(_heads(min(expected, capacity)), np.int32),
        np.empty((capacity, 2), np.uint64),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty((capacity, 3), np.float64),
        np.zeros(1, np.int64),
    )


def _heads(entries: float) -> int:
    return 1 << max(10, min(26, int(np.log2(max(entries, 1.0))) - 1))


def with_heads(cache: Cache, expected: float) -> Cache:
    """The same entries under a table of heads for so many; only while no thread uses the cache."""
    n_heads = _heads(min(expected, len(cache.tags)))
    if n_heads <= len(cache.heads):
        return cache
    grown = cache._replace(heads=np.zeros(n_heads, np.int32))
    if grown.used[0]:
        relink(grown)
    return grown


def forget(cache: Cache) -> None:
    """Empty the cache; only while no thread uses it."""
    if cache.used[0]:
        cache.heads[:] = 0
        cache.used[0] = 0


def at_rest(cache: Cache) -> Cache:
    """The entries alone, without the room for more; only while no thread uses the cache.

    Room that nothing was written to takes no memory, but it counts where addresses have a limit (``ulimit -v``).
    """
    n = min(int(cache.used[0]), len(cache.tags))
    taken = {name: getattr(cache, name)[:n].copy() for name in PER_ENTRY}
    return cache._replace(**taken, used=np.array([n], np.int64))


def with_room(cache: Cache, memory_bytes: float) -> Cache:
    """The entries of a cache at rest, with room for more as in `new_cache`; none where they do not fit."""
    grown, n = new_cache(memory_bytes, expected=0.0), int(cache.used[0])
    if n > len(grown.tags):
        return grown
    for name in PER_ENTRY:
        getattr(grown, name)[:n] = getattr(cache, name)
    return grown._replace(heads=cache.heads, used=cache.used)


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


@intrinsic
def fetch_add(typingctx: Any, array: Any, index: Any, amount: Any) -> Any:
    """``array[index] += amount`` as one step for all threads; returns the value before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return array.dtype(array, types.intp, array.dtype), generate


@intrinsic
def compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, new: Any) -> Any:
    """Write ``new`` where ``array[index]`` still is ``expected``, as one step; returns whether it was written."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        result = builder.cmpxchg(pointer, args[2], args[3], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(result, 1), ir.IntType(8))

    return types.int8(array, types.intp, array.dtype, array.dtype), generate


@njit(inline="always")
def tag_of(depth, leaves):
    """One word for the limits of a subproblem."""
    return np.int32(depth * MAX_LEAVES + leaves)


@shared_kernel
def find(cache, low, high, tag):
    """Index of the entry of a subset under a tag, or -1."""
    slot = np.int64((low + np.uint64(tag)) & np.uint64(cache.heads.shape[0] - 1))
    entry = cache.heads[slot]
    while entry > 0:
        at = entry - 1
        if cache.keys[at, 0] == low and cache.keys[at, 1] == high and cache.tags[at] == tag:
            return np.int64(at)
        entry = cache.following[at]
    return np.int64(-1)


@shared_kernel
def insert(cache, low, high, tag, first, second, third, reserve):
    """Add an entry unless fewer than ``reserve`` places are left; returns its index or -1."""
    capacity = cache.tags.shape[0]
    if cache.used[0] >= capacity - reserve:
        return np.int64(-1)
    at = fetch_add(cache.used, 0, np.int64(1))
    if at >= capacity:
        return np.int64(-1)
    cache.keys[at, 0] = low
    cache.keys[at, 1] = high
    cache.tags[at] = tag
    cache.values[at, 0] = first
    cache.values[at, 1] = second
    cache.values[at, 2] = third
    slot = np.int64((low + np.uint64(tag)) & np.uint64(cache.heads.shape[0] - 1))
    while True:
        head = cache.heads[slot]
        cache.following[at] = head
        if compare_and_swap(cache.heads, slot, head, np.int32(at + 1)):
            return np.int64(at)


def relink(cache: Cache) -> None:
    """Chain all entries anew, the latest of a slot first."""
    n = int(min(cache.used[0], len(cache.tags)))
    slot = (cache.keys[:n, 0] + cache.tags[:n].astype(np.uint64)) & np.uint64(len(cache.heads) - 1)
    order = np.argsort(slot, kind="stable").astype(np.int32)
    first = np.append(True, slot[order[1:]] != slot[order[:-1]])
    cache.heads[:] = 0
    cache.following[order] = np.where(first, 0, np.roll(order, 1) + 1)
    cache.heads[slot[order]] = order + 1  # of several the last one counts
