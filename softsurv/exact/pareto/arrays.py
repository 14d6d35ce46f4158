"""The arrays that the Pareto search reads and writes: rows packed 64 to a word, fronts in an arena."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WORD = 64


class Problem(NamedTuple):
    """A training set as the kernels see it: W words of rows, B binary splits, K statistics, D objectives, L labels."""

    bits: np.ndarray  # (B, W) uint64 rows that go left at each split
    stats: np.ndarray  # (64 W, K) statistics by position, 0 where no row is
    type_of_word: np.ndarray  # (W,) int64 the only statistic that is 1 in the rows of a word, where rows are counted
    counted: bool  # every row has one statistic that is 1, the others 0: sums are population counts
    random: np.ndarray  # (W, 2) uint64 odd words: a subset's key is a sum over its words
    everything: np.ndarray  # (W,) uint64 all rows
    params: np.ndarray  # (L, D, K + 1) parameters of the task
    n_labels: int
    kept: np.ndarray  # (D,) bool objectives without a preferred direction: only equal values are comparable
    constraint: np.ndarray  # (C, D) of the whole tree: constraint @ v <= limit
    limit: np.ndarray  # (C,)
    min_rows: float  # least rows per leaf
    row_count: np.ndarray  # (K,) rows of a subset = row_count . sums, where min_rows > 1
    similar: bool  # the similar-support bound holds
    tolerance: float


class Weights(NamedTuple):
    """One scalarisation: a leaf costs the least over its labels of w . objectives."""

    w: np.ndarray  # (D,)
    label_cost: np.ndarray  # (L, K + 1) cost of each label for linear tasks, 0 for the best label of each row type
    floor: np.ndarray  # (64 W,) what a row adds to the cost of any tree at least
    has_floor: bool
    excess: np.ndarray  # (64 W,) what removing a row takes off the cost at most
    shift: float  # reduced cost <= first objective + shift where the constraint holds
    constrained: bool  # at the root only the best tree that meets the constraint is wanted, not a front


class Scratch(NamedTuple):
    """Written by the kernels; V levels, P points per list, two more lists for the sides of a split."""

    mask: np.ndarray  # (V, W) uint64
    word: np.ndarray  # (W,) int64 words of the subset that are not empty
    type_start: np.ndarray  # (K + 2,) int64
    packed: np.ndarray  # (W, B) uint64
    active: np.ndarray  # (B,) int64 splits with rows on both sides
    size: np.ndarray  # (2,) int64 active splits, words
    flipped: np.ndarray  # (B,) bool
    member: np.ndarray  # (B,) int64
    row: np.ndarray  # (64 W,) int64
    tally: np.ndarray  # (B,) int64
    pair: np.ndarray  # (K, B * B)
    single: np.ndarray  # (K, B)
    total: np.ndarray  # (K,)
    batch: np.ndarray  # (K, 4 B)
    price: np.ndarray  # (4 B,)
    work: np.ndarray  # (4 B,)
    leaf: np.ndarray  # (2, B) cost of the left and the right side as a leaf
    stump: np.ndarray  # (2, B) with at most one more split
    value: np.ndarray  # (3,) cost of the subset with depth 0, 1, 2
    order: np.ndarray  # (V, B) int64 splits, the most promising first
    score: np.ndarray  # (V, B)
    lower: np.ndarray  # (V, 2, B)
    solved: np.ndarray  # (V, 2 B, W) uint64 children solved at this node
    solved_value: np.ndarray  # (V, 2 B)
    n_solved: np.ndarray  # (V,) int64
    sums: np.ndarray  # (2, K)
    label: np.ndarray  # (2, L, D)
    candidate: np.ndarray  # (D,)
    point: np.ndarray  # (V + 2, P, D)
    reduced: np.ndarray  # (V + 2, P)
    origin: np.ndarray  # (V + 2, P, 3) int64
    n_points: np.ndarray  # (V + 2,) int64
    sorting: np.ndarray  # (P,) int64
    spare_point: np.ndarray  # (P, D)
    spare_reduced: np.ndarray  # (P,)
    spare_origin: np.ndarray  # (P, 3) int64
    upper: np.ndarray  # (V,)
    span: np.ndarray  # (V, 2) int64 where the front just found lies in the arena


class Arena(NamedTuple):
    """Finished fronts, one after the other."""

    point: np.ndarray  # (A, D)
    reduced: np.ndarray  # (A,)
    origin: np.ndarray  # (A, 3) int64 split (-1: none), left and right: a place in the arena or a code < 0
    used: np.ndarray  # (1,) int64


STOP, CALLS, FULL, EPOCH = 0, 1, 2, 3
"""Places in the control array: stop flag, base cases solved, a list overflowed, number of the scalarisation."""


def pack(columns: NDArray[np.bool_], position: NDArray[np.int64], n_words: int) -> NDArray[np.uint64]:
    """Binary columns (N, B) as words (B, n_words), row i at bit ``position[i]``."""
    bits = np.zeros((columns.shape[1], n_words * WORD), np.uint8)
    bits[:, position] = columns.T
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).reshape(-1, n_words)


def positions(kind: NDArray[np.int64], n_kinds: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bit of each row (N,), rows of one kind in words of their own, and the kind of each word (W,)."""
    place = np.empty(len(kind), np.int64)
    words: list[int] = []
    for k in range(n_kinds):
        here = np.flatnonzero(kind == k)
        place[here] = len(words) * WORD + np.arange(len(here))
        words += [k] * -(-len(here) // WORD)
    return place, np.array(words or [0], np.int64)


def new_scratch(problem: Problem, depth: int, points: int) -> Scratch:
    """Scratch for trees down to ``depth`` and lists of so many points."""
    b, w = problem.bits.shape
    k, (labels, d, _) = problem.stats.shape[1], problem.params.shape
    v, wide = depth + 2, max(b, 1)
    integer, word = np.int64, np.uint64
    return Scratch(
        mask=np.zeros((v, w), word),
        word=np.zeros(w, integer),
        type_start=np.zeros(k + 2, integer),
        packed=np.zeros((w, wide), word),
        active=np.zeros(wide, integer),
        size=np.zeros(2, integer),
        flipped=np.zeros(wide, np.bool_),
        member=np.zeros(wide, integer),
        row=np.zeros(WORD * w, integer),
        tally=np.zeros(wide, np.int64),
        pair=np.zeros((k, wide * wide)),
        single=np.zeros((k, wide)),
        total=np.zeros(k),
        batch=np.zeros((k, 4 * wide)),
        price=np.zeros(4 * wide),
        work=np.zeros(4 * wide),
        leaf=np.zeros((2, wide)),
        stump=np.zeros((2, wide)),
        value=np.zeros(3),
        order=np.zeros((v, wide), integer),
        score=np.zeros((v, wide)),
        lower=np.zeros((v, 2, wide)),
        solved=np.zeros((v, 2 * wide, w), word),
        solved_value=np.zeros((v, 2 * wide)),
        n_solved=np.zeros(v, integer),
        sums=np.zeros((2, k)),
        label=np.zeros((2, labels, d)),
        candidate=np.zeros(d),
        point=np.empty((v + 2, points, d)),
        reduced=np.empty((v + 2, points)),
        origin=np.empty((v + 2, points, 3), integer),
        n_points=np.zeros(v + 2, integer),
        sorting=np.empty(points, integer),
        spare_point=np.empty((points, d)),
        spare_reduced=np.empty(points),
        spare_origin=np.empty((points, 3), integer),
        upper=np.zeros(v),
        span=np.zeros((v, 2), integer),
    )


def new_arena(capacity: int, n_objectives: int) -> Arena:
    """Room for so many points; pages are taken from the system only when written."""
    return Arena(
        np.empty((capacity, n_objectives)), np.empty(capacity), np.empty((capacity, 3), np.int64), np.zeros(1, np.int64)
    )
