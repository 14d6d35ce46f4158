"""Yes/no columns that belong together as one feature: nested ones are ordered, exclusive ones nominal.

A table of 0/1 columns often holds cuts of one number (``age <= 40``, ``age <= 50``) or the levels of one category. Cuts
of one number are nested: whoever answers yes to one answers yes to the next. Levels exclude each other. The base case
costs p^2 / 2 additions a row for p features, whatever their number of cuts, so a search is several times faster once
such columns are one feature. The splits stay the same, hence the optimum too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain as chain_up
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.exact.entries import make_ready
from softsurv.exact.kernels.grouping import columns_of, group
from softsurv.exact.kernels.views import Packed

MOST_WORK = 1e10
"""Pairs of columns times rows up to which columns are compared: a part of a second."""

Codes = NDArray[np.integer]


@dataclass(frozen=True)
class Splits:
    """Which split of the given features each code of the search's features stands for.

    Attributes
    ----------
    feature, code : (G,) int
        The given feature and code.
    swapped : (G,) bool
        Rows that go left in the search go right in the given feature.
    """

    feature: IntArray
    code: IntArray
    swapped: BoolArray

    def of_branch(self, feature: int, code: int, left: int, right: int) -> tuple[int, int, int]:
        """The split of the search for a branch of a tree on the given features, and the nodes left and right of it.

        Of two codes for one split the first counts.
        """
        split = int(np.argmax((self.feature == feature) & (self.code == code)))
        return (split, right, left) if self.swapped[split] else (split, left, right)


@dataclass(frozen=True)
class Grouped:
    """Features of the search, (U, P') codes, with the number of codes and kind of each, and their splits."""

    codes: Codes
    n_codes: IntArray
    nominal: BoolArray
    splits: Splits


def as_given(codes: Codes, n_codes: NDArray[np.integer], nominal: BoolArray) -> Grouped:
    """Every feature by itself."""
    feature = np.repeat(np.arange(len(n_codes)), n_codes)
    start = np.cumsum(n_codes) - n_codes
    code = np.arange(len(feature)) - start[feature]
    splits = Splits(feature, code, np.zeros(len(feature), np.bool_))
    return Grouped(codes.astype(np.int32), np.asarray(n_codes, np.int64), nominal, splits)


def group_columns(codes: Codes, n_codes: NDArray[np.integer], nominal: BoolArray) -> Grouped:
    """Put nested and exclusive columns of two codes together.

    Parameters
    ----------
    codes : (U, P) int
        No two columns are equal.
    n_codes, nominal : (P,)
    """
    binary = np.flatnonzero(np.asarray(n_codes) == 2)
    if len(binary) < 2 or len(binary) ** 2 * len(codes) > MOST_WORK:
        return as_given(codes, n_codes, nominal)
    answers = (codes if len(binary) == len(n_codes) else codes[:, binary]).T  # (B, U)
    compiled = group.is_ready or group.is_on_disk
    n_levels, place, sizes, new_codes = (_groups_of if compiled else plain_groups_of)(answers)
    n_groups = len(sizes)
    if not n_levels and n_groups == len(binary):
        return as_given(codes, n_codes, nominal)
    of_level = np.arange(n_groups) < n_levels
    feature = binary[place]  # the last code of a chain is no split: it has the column of the one before
    splits = Splits(feature, np.zeros(len(feature), np.int64), np.repeat(of_level, sizes))
    if len(binary) == len(n_codes):
        return Grouped(new_codes, sizes, of_level, splits)
    others = np.flatnonzero(np.asarray(n_codes) != 2)
    rest = as_given(codes[:, others], np.asarray(n_codes)[others], nominal[others])
    return Grouped(
        np.concatenate([rest.codes, new_codes], axis=1),
        np.concatenate([rest.n_codes, sizes]),
        np.concatenate([rest.nominal, of_level]),
        Splits(
            np.concatenate([others[rest.splits.feature], splits.feature]),
            np.concatenate([rest.splits.code, splits.code]),
            np.concatenate([rest.splits.swapped, splits.swapped]),
        ),
    )


Groups = tuple[int, IntArray, IntArray, NDArray[np.int32]]
"""How many groups are levels of a category, which come first; the columns of all groups, one after the other, the last
one of a chain twice; how many of these each group has, (F,); codes of the groups, (U, F)."""


def _groups_of(answers: NDArray[np.integer]) -> Groups:
    """Groups of columns (B, U) by the compiled kernel."""
    columns = columns_of(answers)
    make_ready([group], "the grouping of columns")
    group(Packed(columns))
    n_levels, n_groups = columns.found.tolist()
    sizes = columns.size[:n_groups].astype(np.int64)
    return n_levels, columns.place[: sizes.sum()], sizes, columns.codes[:n_groups].T


def plain_groups_of(answers: NDArray[np.integer]) -> Groups:
    """The same groups, three to six times slower: for the first fit on a machine, which compiles the kernel later."""
    exact: NDArray[Any] = answers.astype(np.float32 if answers.shape[1] < 1 << 24 else np.float64, order="C")
    both = exact @ exact.T  # (B, B) rows that answer two columns with 1
    count, free = both.diagonal(), np.ones(len(answers), np.bool_)
    levels = _levels(count, both == 0, answers.shape[1])
    inside = (both == count) & (count < count[:, None])  # whoever goes left of the first goes left of the second
    if levels:
        free[[*chain_up.from_iterable(levels)]] = False
        inside &= free[:, None] & free
    chains = _chains(inside, free)
    named = [*levels, *([*chain, chain[-1]] for chain in chains)]
    place = np.array([*chain_up.from_iterable(named)], np.int64)
    return len(levels), place, np.array(list(map(len, named))), _codes_of(exact, [*levels, *chains], len(levels))


def _codes_of(answers: FloatArray, groups: list[list[int]], n_levels: int) -> NDArray[np.int32]:
    """Codes (U, F) of groups of columns, whose ``answers`` are 0 or 1, (B, U).

    In a group of levels the code of a row is the place of the column that it answers with 1; in a chain, the number of
    columns that it answers with 1. Both are sums of weights over columns, exact in either type of float.
    """
    weights = np.zeros((len(groups), len(answers)), answers.dtype)
    at = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    weight = [*chain_up.from_iterable(map(range, map(len, groups[:n_levels])))]
    weights[at, [*chain_up.from_iterable(groups)]] = weight + [1] * (len(at) - len(weight))
    return np.asarray((weights @ answers).T.astype(np.int32, order="C"))


def _levels(size: FloatArray, apart: BoolArray, n: int) -> list[list[int]]:
    """Groups of three or more columns of which every row answers 1 to exactly one.

    ``size`` (B,) counts the rows with a 1, ``apart`` (B, B) says which columns exclude each other.
    """
    groups, used, sizes = list[list[int]](), 0, size.tolist()
    packed = np.packbits(apart, axis=1, bitorder="little")

    def beside(column: int) -> int:
        """The columns apart from one, as bits."""
        return int.from_bytes(packed[column].tobytes(), "little")

    for first in np.flatnonzero(apart.astype(size.dtype) @ size + size >= n).tolist():
        if used >> first & 1:
            continue
        group, total, fit = [first], sizes[first], beside(first) & ~used & -2 << first
        while fit:
            column = (fit & -fit).bit_length() - 1
            if total + sizes[column] <= n:
                group.append(column)
                total += sizes[column]
                fit &= beside(column)
            fit &= -2 << column  # the columns behind it
        if total == n and len(group) > 2:
            groups.append(group)
            used |= sum(1 << column for column in group)
    return groups


def _chains(inside: BoolArray, free: BoolArray) -> list[list[int]]:
    """The free columns in as few chains as there can be, each from the smallest column to the largest (Dilworth).

    ``inside`` (B, B) says which column lies inside which; it is transitive. A matching of columns with the next in
    their chain that is as large as can be leaves as few chains as can be.
    """
    if not inside.any():
        return [[column] for column in np.flatnonzero(free).tolist()]
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    row, inside_of = np.nonzero(inside)
    start = np.searchsorted(row, np.arange(len(inside) + 1))
    short = inside_of.astype(np.int32), start.astype(np.int32)  # for SciPy 1.13
    graph = csr_array((np.ones(len(inside_of), np.bool_), *short), inside.shape)
    follower = maximum_bipartite_matching(graph, perm_type="column")
    after, chains = follower.tolist(), []
    followers = set(after)
    for column in np.flatnonzero(free).tolist():
        if column not in followers:
            chains.append(chain := [column])
            while (column := after[column]) >= 0:
                chain.append(column)
    return chains
