"""The splits that divide the rows of a node, and what both sides of them cost.

Splits of one feature that divide the rows of a node alike are one: two cuts with no row between them, or both levels
of two. So are those of several features of one raw column (`alike.py`). Splits of two raw columns stay two even where
they divide these rows alike: they may divide other rows otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.exact.equal_rows import merge_equal_rows
from softsurv.exact.problem import distinct_features
from softsurv.exact.rashomon.alike import RawColumn, raw_columns
from softsurv.exact.rashomon.costs import IMPOSSIBLE
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.search import Search

UNITS = 64
"""Units of cost per tolerance of the search: a tree of 64 leaves is priced to within half a tolerance."""

LARGEST_COST = 2.0**50
"""Largest cost of a tree, in units."""

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class Divisions:
    """All splits of the given features over the distinct rows of a search: G splits, U rows.

    Attributes
    ----------
    problem : SearchProblem
    search : Search
        The search of the same problem.
    feature, code : (G,) int
    goes_left : (U, G) bool
    statistics : (U, W + 1)
        Statistics as the search rounded them, and a last column of ones, which counts distinct rows.
    unit : float
        Cost of one unit, on the scale of the search.
    with_idle : bool
        Whether splits between two leaves are kept even where they lower no cost.
    raw : tuple of RawColumn
        Raw columns of several features.
    """

    problem: SearchProblem
    search: Search
    feature: IntArray
    code: IntArray
    goes_left: BoolArray
    statistics: FloatArray
    unit: float
    with_idle: bool = False
    raw: tuple[RawColumn, ...] = ()

    @classmethod
    def of(
        cls, problem: SearchProblem, search: Search, depth: int, with_idle: bool = False, columns: Sequence[Any] = ()
    ) -> Divisions:
        """The splits of a problem for trees of some depth; ``columns`` (P,) are the raw columns of its features."""
        codes = problem.codes
        kept = distinct_features(codes, problem.nominal, np.zeros(codes.shape[1], int))
        codes = codes[merge_equal_rows(codes[:, kept])[0]]  # the rows of the search, in its order
        n_splits = np.asarray(problem.n_codes) - ~np.asarray(problem.nominal, bool)
        feature = np.repeat(np.arange(len(n_splits)), n_splits)
        code = np.arange(len(feature)) - np.repeat(n_splits.cumsum() - n_splits, n_splits)
        column = codes[:, feature]
        left = np.where(np.asarray(problem.nominal, bool)[feature], column == code, column <= code)
        statistics = np.column_stack([search.problem.stats, np.ones(len(codes))])
        unit = max(search.problem.tolerance / UNITS, problem.complexity * 2**depth / LARGEST_COST)
        return cls(
            problem, search, feature, code, left, statistics, unit, with_idle, raw_columns(columns, feature, left)
        )

    # -- costs ---------------------------------------------------------------------------------------------------
    def in_units(self, cost: float) -> int:
        """A cost of the search in whole units."""
        return round(cost / self.unit)

    @cached_property
    def per_leaf(self) -> int:
        """Cost per leaf, in units."""
        return self.in_units(self.problem.complexity)

    def leaf_costs(self, sums: FloatArray) -> IntArray:
        """Cost of leaves, cost per leaf included, from sums (W + 1, ...); `IMPOSSIBLE` where one is too small."""
        p = self.search.problem
        flat = np.ascontiguousarray(sums.reshape(len(sums), -1))
        out = np.empty(flat.shape[1])
        self.problem.task.leaf_costs(flat[: p.n_statistics], len(out), out)
        cost = np.rint(out / self.unit).astype(np.int64) + self.per_leaf
        allowed = flat[-1] > 0
        if p.use_size:
            allowed &= flat[-2] >= p.min_leaf
        return np.where(allowed, cost, IMPOSSIBLE).reshape(sums.shape[1:])

    def is_idle(self, gain: IntArray) -> BoolArray:
        """Whether splits between leaves lower the costs by so little, in units, that they are left out."""
        return np.asarray((gain < UNITS) & (not self.with_idle))

    def split_of(self, feature: int, code: int) -> int:
        """The split of a feature of the problem at a code; -1 where there is none."""
        found = np.flatnonzero((self.feature == feature) & (self.code == code))
        return int(found[0]) if len(found) else -1

    # -- nodes ---------------------------------------------------------------------------------------------------
    def of_rows(self, rows: Rows, among: IntArray | None = None) -> tuple[IntArray, FloatArray]:
        """Splits (S,) of ``among``, or of all, that divide some rows, and which rows go left (n, S) as 0 and 1."""
        among = np.arange(len(self.feature)) if among is None else among
        left = self.goes_left[np.ix_(rows, among)]
        keep = self.dividing(among, np.count_nonzero(left, axis=0), np.array(len(rows)), rows, np.ones(len(rows)))
        return among[keep], left[:, keep].astype(np.float64)

    def dividing(
        self, splits: IntArray, count: NDArray[np.number], n: NDArray[np.number], rows: Rows, among: FloatArray
    ) -> BoolArray:
        """Which splits (S,) divide ``n`` (...,) rows, ``count`` (..., S) being on the left; equal ones count once.

        ``among`` (R, ...) says with 1 which of ``rows`` (R,) these are, and with 0 which not.
        """
        keep = (count > 0) & (count < n[..., None])
        feature, nominal = self.feature[splits], np.asarray(self.problem.nominal, bool)
        if len(splits) > 1:  # nested: equal numbers are equal rows
            again = (feature[1:] == feature[:-1]) & ~nominal[feature[1:]]
            keep[..., 1:] &= ~(again & (count[..., 1:] == count[..., :-1]))
        for f in np.unique(feature[nominal[feature]]):
            here = feature == f
            levels = keep[..., here]
            second = levels & (levels.cumsum(axis=-1) == 2) & (levels.sum(axis=-1, keepdims=True) == 2)
            keep[..., here] = levels & ~second
        for column in self.raw:
            keep &= ~column.repeated(splits, rows, among)
        return keep
