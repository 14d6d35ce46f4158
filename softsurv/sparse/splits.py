"""Features, rows and cuts of one branch node, by which rules are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.sparse.cut_kernels import best_cuts, cut_gains
from softsurv.sparse.kernels import causes_of, gain_of_leaf
from softsurv.sparse.short_numbers import CLOSE, shortest
from softsurv.trees.linear_rule import TIE, LinearRule

TERM_GAIN = 4.0
"""What another term must gain in log-likelihood. The best of many rules of two terms gains about this by chance. Seven
features make 21 pairs with 14 ratios each. The largest of 294 independent chi-squared values with two degrees of
freedom, halved, is 6.3 on average; the directions are correlated, so it is less here. With two causes there are four
degrees, and it is 8.5, 1.4 times as much: the gain that is asked for grows with the square root of the causes."""

SHORT_COST = 0.5
"""What a threshold of fewer digits may cost in log-likelihood. Data do not locate a cut that well: its 95 % interval
holds all thresholds within 1.9 of the best."""


CLEAR = 1.01
"""A little more than the tie itself."""


@dataclass(frozen=True)
class SplitData:
    """The features that splits may use.

    Attributes
    ----------
    values : (P, N)
        Encoded columns in the data's units: numbers, and indicators of levels.
    single : tuple of int
        Columns that can make a rule alone: numbers, and the indicator of a category of two levels.
    categories : tuple of tuple of int
        For each category of three levels or more the columns of its levels.
    tie : float
        By how much, on encoded columns, the routing of the tree tells a score from a threshold (`linear_rule.TIE`).
    scale : (P,), optional
        What 1 of an encoded column is in the data's units; None where columns are not encoded.
    """

    values: FloatArray
    single: tuple[int, ...]
    categories: tuple[tuple[int, ...], ...]
    tie: float = TIE
    scale: FloatArray | None = None

    def room(self, columns: Sequence[int]) -> FloatArray:
        """Room (C,) that a threshold of each column needs below the next value."""
        each = np.ones(len(columns)) if self.scale is None else self.scale[list(columns)]
        return CLEAR * self.tie * each

    def clearance(self, rule: LinearRule) -> float:
        """Room that the threshold of a rule needs below the next score."""
        return float((np.abs(rule.coefficients) * self.room(rule.columns)).max())

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """Row numbers that sort each column, (P, N)."""
        out = np.empty(self.values.shape, np.int32)
        for column, values in zip(out, self.values, strict=True):
            column[:] = np.argsort(values, kind="stable")
        return out

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """For each category the level (N,) of every row; C, the number of levels, for a row that has none of them."""
        out = []
        for columns in self.categories:
            level = np.full(self.values.shape[1], len(columns))
            for place, column in enumerate(columns):
                level[self.values[column] > 0] = place
            out.append(level)
        return tuple(out)


@dataclass(frozen=True)
class NodeRows:
    """The rows at a branch node.

    Attributes
    ----------
    data : SplitData
        Features of all rows.
    rows : (n,) int
        Numbers of the rows at the node, in order.
    table : (n, 5 K) or (n, 1)
        Where both sides are leaves: for each cause slopes and curvatures of each row's loss, so that each cut is judged
        by the best corrections of both. Otherwise the loss of each row on the right less its loss on the left.
    size : (n,)
        Size of each row.
    least, penalty : float
        Least sum of sizes of a side; penalty of a correction.
    """

    data: SplitData
    rows: IntArray
    table: FloatArray
    size: FloatArray
    least: float
    penalty: float

    @property
    def term_gain(self) -> float:
        """What another term of a rule must gain."""
        return TERM_GAIN * len(causes_of(self.table)) ** 0.5

    @property
    def turns(self) -> tuple[float, ...]:
        """Signs of a score to try: where the sides below differ, the reverse of a score is another rule."""
        return (1.0,) if self.table.shape[1] > 1 else (1.0, -1.0)

    def values(self, column: int) -> FloatArray:
        """Values of a column for the rows at the node, (n,)."""
        return self.data.values[column][self.rows]

    def gain(self, rule: LinearRule) -> float:
        """Gain of a rule."""
        high = rule.holds(self.data.values)[self.rows]
        if self.table.shape[1] == 1:
            return -float(self.table[~high].sum())
        causes = causes_of(self.table)
        return float(sum(gain_of_leaf(self.table[side].sum(0), self.penalty, causes) for side in (high, ~high)))

    def cut(self, rule: LinearRule, turn: float = 1.0) -> Cut:
        """Best cut along ``turn`` times the score of a rule."""
        table, score = self.table if turn > 0 else -self.table, rule.score(self.data.values)[self.rows]
        order = np.argsort(score, kind="stable")
        margin = max(CLOSE * float(np.abs(score).max()), 2 * self.data.clearance(rule))
        how = (self.size, self.least, self.penalty, margin, causes_of(table))
        gains, best = cut_gains(score, order, table, *how)
        if turn < 0:  # rows above the cut go right: they lose the whole table
            best -= float(self.table.sum())
        return Cut(best, gains, score[order])

    def best_gains(self, columns: Sequence[int]) -> FloatArray:
        """Gain of the best cut of each column in each of the `turns`, (C, turns)."""
        place = np.full(self.data.values.shape[1], -1, np.int32)
        place[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        room = 2 * self.data.room(columns)
        how = (self.table, self.size, self.least, self.penalty, CLOSE, room, causes_of(self.table))
        best = best_cuts(np.array(columns, dtype=np.int64), self.data.values, self.data.order, place, *how)
        best[:, 1] -= float(self.table.sum())  # of the reverse score, as in `cut`
        return best[:, : len(self.turns)]


@dataclass(frozen=True)
class Cut:
    """The best cut along a score, and all others.

    Attributes
    ----------
    gain : float
        Gain of the best cut; -inf where none is allowed.
    gains : (n - 1,)
        Gain of the cuts between neighbours, up to a constant; -inf where a cut is not allowed, nan where both are
        equal.
    scores : (n,)
        Sorted.
    """

    gain: float
    gains: FloatArray
    scores: FloatArray

    @property
    def below(self) -> float:
        """The largest score below the best cut."""
        return float(self.scores[np.nanargmax(self.gains)])

    def threshold(self, avoid: bool, clearance: float = 0.0) -> float:
        """The shortest number within the cuts around the best that gain at most `SHORT_COST` less than it.

        With ``avoid`` it equals no score; for ``clearance`` see `shortest`.
        """
        best = int(np.nanargmax(self.gains))
        poor = np.flatnonzero(self.gains < self.gains[best] - SHORT_COST)
        after = int(np.searchsorted(poor, best))
        first = int(poor[after - 1]) + 1 if after > 0 else 0
        last = int(poor[after]) if after < len(poor) else len(self.gains)
        middle = 0.5 * float(self.scores[best]) + 0.5 * float(self.scores[best + 1])
        return shortest(self.scores[first : last + 1], middle, avoid, clearance)


@dataclass(frozen=True)
class BestRule:
    """A rule, the gain of the best cut along its score, whether the sides below must be swapped, and the cuts."""

    rule: LinearRule
    gain: float
    swap: bool = False
    cut: Cut | None = None

    def short(self, data: SplitData) -> BestRule:
        """The rule with the shortest threshold that is as good; the threshold of a sum equals no row's score."""
        if self.cut is None:
            return self
        avoid = len(self.rule.columns) > 1 or self.rule.columns[0] not in data.single
        threshold = self.cut.threshold(avoid, data.clearance(self.rule))
        return replace(self, rule=replace(self.rule, threshold=threshold))


def sums_of_levels(level: IntArray, table: FloatArray, n_levels: int) -> FloatArray:
    """Sums (C + 1, k) of a table (n, k) over the rows of each level; the last are those of rows without a level."""
    return np.column_stack([np.bincount(level, weights=column, minlength=n_levels + 1) for column in table.T])


def orders_of_levels(sums: FloatArray, count: IntArray, penalty: float) -> list[list[int]]:
    """Levels that occur among the rows, sorted by the correction that their sums give: an order for each cause.

    ``sums`` (C + 1, 5 K) are those of `sums_of_levels`, ``count`` (C + 1,) the numbers of rows.
    """
    orders: list[list[int]] = []
    for first in causes_of(sums):
        slope = sums[:, first]
        weight = sums[:, first + 2] + penalty if sums.shape[1] > 1 else count
        order = [level for _, level in sorted((slope[k] / weight[k], k) for k in np.flatnonzero(count[:-1]).tolist())]
        if order not in orders:
            orders.append(order)
    return orders
