"""Yes/no columns that belong together as one feature: nested ones are ordered, exclusive ones nominal.

A table of 0/1 columns often holds cuts of one number (``age <= 40``, ``age <= 50``) or the levels of one category. Cuts
of one number are nested: whoever answers yes to one answers yes to the next. Levels exclude each other. The base case
costs p^2 / 2 additions a row for p features, whatever their number of cuts, so a search is several times faster once
such columns are one feature. The splits stay the same, hence the optimum too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray

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
    left = np.ascontiguousarray((codes if len(binary) == len(n_codes) else codes[:, binary]).T) == 0  # (B, U)
    exact: NDArray[Any] = left.astype(np.float32 if len(codes) < 1 << 24 else np.float64)
    both = exact @ exact.T  # (B, B) rows that go left of two columns
    count = both.diagonal()
    size, free = (len(codes) - count).astype(np.int64), np.ones(len(binary), np.bool_)
    levels = _levels(size, both - count[:, None] == count - len(codes), len(codes))
    inside = (both == count[:, None]) & (count[:, None] < count)
    if levels:
        free[[column for group in levels for column in group]] = False
        inside &= free[:, None] & free
    chains = _chains(inside, free)
    if not levels and len(chains) == len(binary):
        return as_given(codes, n_codes, nominal)
    others = np.flatnonzero(np.asarray(n_codes) != 2)
    grouped = [*levels, *chains]
    sizes = np.array([*map(len, levels), *(len(chain) + 1 for chain in chains)], np.int64)
    # the last code of a chain names no split; it is given that of the code before
    feature = binary[[column for group in (*levels, *([*chain, chain[-1]] for chain in chains)) for column in group]]
    new_codes = _codes_of(exact, grouped, len(levels))
    of_level = np.arange(len(grouped)) < len(levels)
    splits = Splits(feature, np.zeros(len(feature), np.int64), np.repeat(of_level, sizes))
    if not len(others):
        return Grouped(new_codes, sizes, of_level, splits)
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


def _codes_of(left: FloatArray, groups: list[list[int]], n_levels: int) -> NDArray[np.int32]:
    """Codes (U, F) of groups of columns; ``left`` (B, U) is 1 where a row answers 0.

    Of a level, the place of the column that a row answers with 1; of a chain, how many columns it answers with 1. Both
    are sums of weights over columns, exact in either type of float.
    """
    weights = np.zeros((len(groups), len(left)), left.dtype)
    at = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    weight = [place if k < n_levels else 1 for k, group in enumerate(groups) for place in range(len(group))]
    weights[at, [column for group in groups for column in group]] = weight
    return np.asarray((weights.sum(axis=1, keepdims=True) - weights @ left).T.astype(np.int32, order="C"))


def _levels(size: IntArray, apart: BoolArray, n: int) -> list[list[int]]:
    """Groups of three or more columns of which every row answers 1 to exactly one.

    ``size`` (B,) counts the rows with a 1, ``apart`` (B, B) says which columns exclude each other.
    """
    groups, used = [], np.zeros(len(size), np.bool_)
    beside = apart.astype(np.float64) @ np.stack(
        [np.ones(len(size)), size], axis=1
    )  # (B, 2) columns, and rows of these
    for first in np.flatnonzero((beside[:, 0] > 1) & (beside[:, 1] + size >= n)).tolist():
        if used[first]:
            continue
        group, total, fit = [first], int(size[first]), apart[first] & ~used
        for column in np.flatnonzero(fit[first + 1 :]) + first + 1:
            if fit[column] and total + size[column] <= n:
                group.append(int(column))
                total += int(size[column])
                fit = fit & apart[column]
        if total == n and len(group) > 2:
            groups.append(group)
            used[group] = True
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
    graph = csr_array((np.ones(len(inside_of), np.bool_), inside_of, start), inside.shape)
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)  # for SciPy 1.13
    follower = maximum_bipartite_matching(graph, perm_type="column")
    heads = free.copy()
    heads[follower[follower >= 0]] = False
    after, chains = follower.tolist(), []
    for column in np.flatnonzero(heads).tolist():
        chain = [column]
        while after[chain[-1]] >= 0:
            chain.append(after[chain[-1]])
        chains.append(chain)
    return chains
