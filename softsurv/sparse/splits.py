"""The best rule of few terms at one branch node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.numerics import spread
from softsurv.sparse.cut_kernels import best_cuts, best_pair, cut_gains
from softsurv.sparse.kernels import causes_of, gain_of_leaf
from softsurv.sparse.short_numbers import CLOSE, short_number, shortest
from softsurv.trees.linear_rule import TIE, LinearRule

RATIOS = np.array([sign * ratio for ratio in (0.2, 0.4, 0.7, 1.0, 1.4, 2.5, 5.0) for sign in (1, -1)])
"""Coefficients that are tried for a second term, in units of the features' standard deviations."""

FINER = np.array([0.75, 0.87, 1.0, 1.15, 1.33])
"""Factors by which the best ratio is then varied."""

PAIR_COLUMNS, PAIR_ROWS = 7, 1000
"""Number of features, those that split best alone, that make up directions; most rows on which these are compared."""

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
        margin = max(CLOSE * (1 + float(np.abs(score).max())), 2 * self.data.clearance(rule))
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


def best_rule(rows: NodeRows, old: LinearRule, max_terms: int) -> BestRule:
    """The best rule of at most ``max_terms`` features: the best cut of the old score unless another rule gains more."""
    cut = rows.cut(old)
    best = BestRule(old, cut.gain + 1e-6, cut=cut) if np.isfinite(cut.gain) else BestRule(old, rows.gain(old) + 1e-6)
    single = rows.data.single
    columns = [*single, *(column for levels in rows.data.categories if max_terms > 1 for column in levels)]
    gains = rows.best_gains(columns)
    most = gains[: len(single)].max(1, initial=-np.inf)
    if len(single) and most.max() > best.gain:
        at = int(most.argmax())
        turn = rows.turns[int(gains[at].argmax())]
        rule = LinearRule((single[at],), (1.0,), 0.0)
        best = BestRule(rule, float(most[at]), turn < 0, rows.cut(rule, turn))
    for levels, own in zip(rows.data.categories, rows.data.levels, strict=True):
        best = _better_levels(rows, best, levels, own)
    if max_terms > 1:
        best = _better_direction(rows, best, columns, gains.max(1), max_terms)
    return best.short(rows.data)


def _better_levels(rows: NodeRows, best: BestRule, columns: tuple[int, ...], level: IntArray) -> BestRule:
    """The best set of a category's levels to send left, if it gains more: the levels above a cut of their order."""
    at = level[rows.rows]
    sums, size = (
        sums_of_levels(at, rows.table, len(columns)),
        sums_of_levels(at, rows.size[:, None], len(columns))[:, 0],
    )
    for order in orders_of_levels(sums, np.bincount(at, minlength=len(sums)), rows.penalty):
        if len(order) < 2:
            continue
        place, table, sizes = np.arange(len(order)), sums[order], size[order]
        table[0], sizes[0] = table[0] + sums[-1], sizes[0] + size[-1]  # rows without a level go right like the first
        how = (rows.least, rows.penalty, CLOSE, causes_of(rows.table))
        gains, gain = cut_gains(place.astype(float), place, table, sizes, *how)
        if gain > best.gain:
            chosen = tuple(sorted(columns[level] for level in order[int(np.nanargmax(gains)) + 1 :]))
            best = BestRule(LinearRule(chosen, (1.0,) * len(chosen), 0.5), gain)
    return best


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


def _better_direction(
    rows: NodeRows,
    best: BestRule,
    columns: Sequence[int],
    alone: FloatArray,  # (C,) what each column gains alone
    max_terms: int,
) -> BestRule:
    """The best direction over two or three features, where it gains enough for its terms."""
    best_first = (columns[k] for k in np.argsort(-alone, kind="stable"))
    usable = list(islice((column for column in best_first if np.ptp(rows.values(column)) > 0), PAIR_COLUMNS))
    if len(usable) < 2:
        return best
    n = len(rows.size)
    some = np.arange(n) if n <= PAIR_ROWS else np.random.default_rng(0).choice(n, PAIR_ROWS, replace=False)
    values = np.array([rows.values(column) for column in usable])
    widths = spread(values)
    z = np.ascontiguousarray(((values - values.mean(1, keepdims=True)) / widths[:, None])[:, some])
    pairs = np.array([(i, j) for i in range(len(usable)) for j in range(i)], dtype=np.int64)
    for turn in rows.turns:
        part = replace(rows, table=turn * rows.table[some] if turn < 0 else rows.table[some], size=rows.size[some])
        part = replace(part, least=rows.least * len(some) / n)
        gain, at, ratio = _direction(part, z, pairs)
        if at < 0:
            continue
        j, k = pairs[at]
        weights = {usable[j]: 1 / widths[j], usable[k]: ratio / widths[k]}
        best = _offer(rows, best, weights, turn)
        others = [m for m in range(len(usable)) if m not in (j, k)]
        if max_terms < 3 or not others:
            continue
        base = z[j] + ratio * z[k]
        size = float(base.std()) or 1.0
        table = np.vstack([base / size, z[others]])
        threes = np.array([(0, 1 + m) for m in range(len(others))], dtype=np.int64)
        third_gain, at, ratio = _direction(part, table, threes)
        if at >= 0 and third_gain > gain + part.term_gain:
            third = others[at]
            best = _offer(rows, best, weights | {usable[third]: ratio * size / widths[third]}, turn)
    return best


def _direction(rows: NodeRows, z: FloatArray, pairs: IntArray) -> tuple[float, int, float]:
    """Best of the pairs of standardised features (S, n): gain, place of the pair and ratio of its coefficients."""
    how = (rows.table, rows.size, rows.least, rows.penalty, causes_of(rows.table))
    gain, at, which = best_pair(z, pairs, RATIOS, *how)
    if at < 0:
        return gain, at, 0.0
    ratios = RATIOS[which] * FINER
    finer, _, which = best_pair(z, pairs[at : at + 1], ratios, *how)
    return finer, at, float(ratios[which])


def _offer(rows: NodeRows, best: BestRule, weights: dict[int, float], turn: float) -> BestRule:
    """Round a direction to two digits in the data's units, find its best cut, and take it if it gains enough."""
    columns = tuple(sorted(weights, key=lambda k: -abs(weights[k]) * spread(rows.values(k))))
    lead = weights[columns[0]]
    coefficients = tuple(short_number(weights[k] / lead) for k in columns)
    rule = LinearRule(columns, coefficients, 0.0)
    turn = turn if lead > 0 else -turn
    if rows.table.shape[1] > 1:
        turn = 1.0  # both sides are leaves, which have no order
    cut = rows.cut(rule, turn)
    asked = len(best.rule.columns) if any(c != 1.0 for c in best.rule.coefficients) else 1
    if cut.gain > best.gain + rows.term_gain * max(len(columns) - asked, 0):
        return BestRule(rule, cut.gain, turn < 0, cut)
    return best
