"""Indexing of complete binary trees: heap order for branch nodes, left to right for leaves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError

MAX_DEPTH = 10
"""1,023 branch nodes; nobody reads a soft tree of that size."""


def check_depth(depth: object) -> int:
    """The depth as an integer from 0 to MAX_DEPTH; anything else is an `InvalidParameterError`."""
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or not 0 <= depth <= MAX_DEPTH:
        raise InvalidParameterError(f"depth must be an integer from 0 to {MAX_DEPTH}, got {depth!r}")
    return int(depth)


def n_branches(depth: int) -> int:
    """B, the number of branch nodes."""
    return 2**depth - 1


def n_leaves(depth: int) -> int:
    """L, the number of leaves."""
    return 2**depth


def level_slice(level: int) -> slice:
    """Branch nodes of one level (root: level 0), left to right."""
    return slice(2**level - 1, 2 ** (level + 1) - 1)


@lru_cache
def paths(depth: int) -> np.ndarray:  # (L, B)
    """+1 where the leaf lies left of the branch node, -1 right of it, 0 off its path."""
    table = np.zeros((n_leaves(depth), n_branches(depth)), dtype=np.int8)
    for leaf in range(n_leaves(depth)):
        node = 0
        for level in range(depth):
            right = (leaf >> (depth - 1 - level)) & 1
            table[leaf, node] = -1 if right else 1
            node = 2 * node + 1 + right
    table.setflags(write=False)
    return table


def parting_node(routing: FloatArray, node: int) -> int:
    """First node from ``node`` down (heap order) that divides the rows: a branch node, or the leaf at the end.

    A branch node without weights sends all rows to one side. It is skipped.
    """
    while node < len(routing) and not routing[node, 1:].any():
        node = 2 * node + (1 if routing[node, 0] >= 0 else 2)
    return node


def used_leaves(routing: FloatArray) -> IntArray:
    """Leaves that rows can reach, from left to right, by the routing weights (B, P + 1) of a complete tree.

    What is printed numbers the leaves by their place in this list: a tree of three leaves has the leaves 0, 1 and 2.
    """
    found: list[int] = []
    waiting = [0]
    while waiting:
        node = parting_node(routing, waiting.pop())
        if node >= len(routing):
            found.append(node - len(routing))
        else:
            waiting += [2 * node + 2, 2 * node + 1]
    return np.array(found, dtype=np.int64)
