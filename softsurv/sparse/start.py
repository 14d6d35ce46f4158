"""The tree of corrections to start from: on binned features, exact to depth two, with a beam of roots above that.

One regression is fitted to all rows. A leaf may correct the level and the shape of this regression. To second order the
gain in log-likelihood is a function of five sums over the leaf's rows for each cause (`kernels`). So histograms of
pairs of features are enough to compare all pairs of splits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.cuts import next_rises
from softsurv.sparse.kernels import best_trees, causes_of, gain_of_leaf, gains_alone
from softsurv.sparse.short_numbers import short_between
from softsurv.sparse.splits import SplitData, orders_of_levels, sums_of_levels
from softsurv.trees.linear_rule import LinearRule, Rules, answers_of, rows_at

N_BINS = 12
"""Bins of a number. Every cut is tried later, when the rules are polished."""

FEATURES_A_CALL = 1000
"""Features whose gains are computed between two looks at the clock."""

MAX_FEATURES = 24
"""Most features that are compared in pairs, those that gain most alone: the time grows with their square."""

BEAM = 8
"""Roots that are tried above trees of depth two."""

START_DEPTH = 3
"""Depth of the largest trees to start from; deeper ones are grown on these."""

STUMP: Rules = (None, None, None)


@dataclass(frozen=True)
class RulesOfNumber(Sequence[LinearRule]):
    """The rules "above this code" of a number, each made on access.

    Attributes
    ----------
    column : int
    low, high : (K,)
        Largest value up to each cut, and least value above it.
    clearance : float
        Room that a threshold needs below the least value above it.
    """

    column: int
    low: FloatArray
    high: FloatArray
    clearance: float = 0.0

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, code: Any) -> Any:
        threshold = short_between(float(self.low[code]), float(self.high[code]), self.clearance)
        return LinearRule((self.column,), (1.0,), threshold)


@dataclass(frozen=True)
class Bins:
    """Features as small integers.

    Attributes
    ----------
    codes : (F, N) int16
    n_codes : (F,) int
    rules : tuple of sequence of LinearRule
        For each feature and code the rule "above this code".
    """

    codes: NDArray[np.int16]
    n_codes: IntArray
    rules: tuple[Sequence[LinearRule], ...]


@dataclass(frozen=True)
class NumberBins:
    """The numbers in bins of some rows: codes (Q, N) of all rows, how many (Q,), and the rules of each number."""

    codes: NDArray[np.int16]
    n_codes: IntArray
    rules: tuple[RulesOfNumber, ...]


@dataclass(frozen=True)
class StartProblem:
    """Rows and their slopes and curvatures, by which trees are compared.

    Attributes
    ----------
    data : SplitData
    rows : (n,) int
        Training rows.
    sums : (N, 5 K)
        Slopes and curvatures of each row for each cause, as in `kernels`.
    size : (N,)
        Size of each row; ``least`` is the least sum of sizes in a leaf.
    least, penalty : float
    numbers : NumberBins, optional
        `number_bins` of these rows, where they are known.
    """

    data: SplitData
    rows: IntArray
    sums: FloatArray
    size: FloatArray
    least: float
    penalty: float
    numbers: NumberBins | None = None


def never() -> bool:
    """Whether to stop: never."""
    return False


def bins_of(problem: StartProblem, most: int | None = MAX_FEATURES, stop: Callable[[], bool] = never) -> Bins:
    """Numbers in quantile bins of the training rows, levels of a category in the order of their corrections.

    Of more than ``most`` features only those are kept that gain most alone; features not tried before ``stop`` come
    last.
    """
    data, rows = problem.data, problem.rows
    numbers = number_bins(data, rows) if problem.numbers is None else problem.numbers
    codes, rules = [], list[Sequence[LinearRule]](numbers.rules)
    for columns, level_of in zip(data.categories, data.levels, strict=True):
        sums = sums_of_levels(level_of[rows], problem.sums[rows], len(columns))
        for order in orders_of_levels(sums, np.bincount(level_of[rows], minlength=len(sums)), problem.penalty):
            if len(order) < 2:
                continue
            code = np.zeros(data.values.shape[1], dtype=np.int64)
            for place, level in enumerate(order):
                code[level_of == level] = place
            codes.append(code)
            above_each = [tuple(sorted(columns[level] for level in order[k + 1 :])) for k in range(len(order) - 1)]
            rules.append(tuple(LinearRule(chosen, (1.0,) * len(chosen), 0.5) for chosen in above_each))
    table, n_codes = numbers.codes, numbers.n_codes
    if codes:
        table = np.concatenate([table, np.array(codes, dtype=np.int16)])
        n_codes = np.append(n_codes, [len(own) + 1 for own in rules[len(n_codes) :]])
    bins = Bins(table, n_codes, tuple(rules))
    return bins if most is None else _strongest(problem, bins, most, stop)


def number_bins(data: SplitData, rows: IntArray, n_bins: int = N_BINS) -> NumberBins:
    """Every number that is not constant in quantile bins of some rows (n,)."""
    rules = tuple(_number_rules(data, rows, n_bins))
    codes = np.empty((len(rules), data.values.shape[1]), dtype=np.int16)
    for code, own in zip(codes, rules, strict=True):
        code[:] = own.low.searchsorted(data.values[own.column])
    return NumberBins(codes, np.array([len(own) + 1 for own in rules], dtype=np.int64), rules)


def _number_rules(data: SplitData, rows: IntArray, n_bins: int) -> list[RulesOfNumber]:
    """Cuts of each number that is not constant: at its quantiles, or between all its values where these are few."""
    single = np.array(data.single, dtype=np.intp)
    if not single.size:
        return []
    ordered, room = np.sort(data.values[np.ix_(single, rows)], axis=1), data.room(data.single)
    rises = np.diff(ordered) > 2 * room[:, None]  # (Q, n - 1) places between two values that the tree tells apart
    many = np.flatnonzero(np.count_nonzero(rises, axis=1) >= n_bins)
    if many.size:
        rank = np.floor(np.arange(1, n_bins) / n_bins * (len(rows) - 1)).astype(np.intp)
        after, there = next_rises(rises[many], np.minimum(rank, len(rows) - 2))  # (Q, n_bins - 1)
        kept = np.zeros(many.size * rises.shape[1], dtype=bool)
        kept[after[there]] = True  # the last place is behind the largest value
        rises[many] = kept.reshape(many.size, -1)
    feature, place = np.nonzero(rises)
    low, high, end = ordered[feature, place], ordered[feature, place + 1], np.cumsum(np.count_nonzero(rises, axis=1))
    parts = zip(data.single, [0, *end[:-1].tolist()], end.tolist(), room.tolist(), strict=True)
    return [RulesOfNumber(column, low[a:b], high[a:b], own) for column, a, b, own in parts if a < b]


def _strongest(problem: StartProblem, bins: Bins, most: int, stop: Callable[[], bool]) -> Bins:
    """The features that gain most alone, where there are many."""
    if len(bins.rules) <= most:
        return bins
    how = (problem.rows, problem.sums, problem.size, problem.least, problem.penalty, causes_of(problem.sums))
    gains = np.full(len(bins.rules), -np.inf)
    for first in range(0, len(gains), FEATURES_A_CALL):
        if stop():
            break
        some = slice(first, first + FEATURES_A_CALL)
        gains[some] = gains_alone(bins.codes[some], bins.n_codes[some], *how)
    kept = np.sort(np.argsort(gains)[-most:])
    return Bins(bins.codes[kept], bins.n_codes[kept], tuple(bins.rules[f] for f in kept))


def trees_of_corrections(problem: StartProblem, depth: int, stop: Callable[[], bool] = never) -> dict[int, Rules]:
    """Rules of the best trees found with 2, 3, ... leaves, as many as the rows allow, to depth 3 at most.

    Once ``stop`` is True, no further roots are tried.
    """
    bins = bins_of(problem, stop=stop)
    if not bins.rules or stop():
        return {}
    found, roots = _two_levels(problem, bins, problem.rows)
    out = {n: (gain, rules[:1] if n == 2 else rules) for n, (gain, rules) in found.items() if n > 1}
    if depth < 2:
        out = {n: tree for n, tree in out.items() if n == 2}
    for feature, code in roots if depth > 2 else ():
        if stop():
            break
        above = bins.codes[feature, problem.rows] > code
        left, right = (_two_levels(problem, bins, problem.rows[side])[0] for side in (above, ~above))
        for i, (gain_left, (a, b, c)) in left.items():
            for j, (gain_right, (d, e, f)) in right.items():
                gain = gain_left + gain_right
                if i + j > 4 and gain > out.get(i + j, (-np.inf,))[0]:
                    out[i + j] = (gain, (bins.rules[feature][code], a, d, b, c, e, f))
    return {n: rules for n, (_, rules) in out.items()}


def tree_grown_on(problem: StartProblem, rules: Rules, n_leaves: int) -> Rules | None:
    """The tree with its leaves split further where that gains most; None where the rows allow no larger tree.

    Parameters
    ----------
    problem : StartProblem
    rules : Rules
        In heap order, of the depth that the new tree may have.
    n_leaves : int
        Leaves of the new tree, which has fewer where depth or rows allow no more.
    """
    bins, answers = bins_of(problem), answers_of(rules, problem.data.values)[:, problem.rows]
    if not bins.rules:
        return None
    best: dict[int, tuple[float, Rules]] = {0: (0.0, rules)}
    for node in _ends(rules):
        room = 1 if node >= len(rules) else 2 if 2 * node + 1 >= len(rules) else n_leaves
        here = _two_levels(problem, bins, problem.rows[rows_at(answers, node)])[0]
        new: dict[int, tuple[float, Rules]] = {}
        for so_far, (gain, tree) in best.items():
            for n, (more, below) in here.items():
                total = so_far + n
                if n <= room and total <= n_leaves and gain + more > new.get(total, (-np.inf,))[0]:
                    new[total] = (gain + more, _with_below(tree, node, below))
        best = new
    most = max(best)
    return best[most][1] if most > len(_ends(rules)) else None


def _ends(rules: Rules, node: int = 0) -> list[int]:
    """Nodes at which a tree ends: leaves, or branch nodes without a rule."""
    if node >= len(rules) or rules[node] is None:
        return [node]
    return [*_ends(rules, 2 * node + 1), *_ends(rules, 2 * node + 2)]


def _with_below(rules: Rules, node: int, below: Rules) -> Rules:
    """The rules with those of a tree of depth two in place of an end."""
    new = list(rules)
    for place, rule in zip((node, 2 * node + 1, 2 * node + 2), below, strict=True):
        if rule is not None:
            new[place] = rule
    return tuple(new)


def _two_levels(
    problem: StartProblem, bins: Bins, rows: IntArray
) -> tuple[dict[int, tuple[float, Rules]], list[tuple[int, int]]]:
    """Best trees of depth two over some rows by number of leaves, with their gains; and the most promising roots."""
    causes = causes_of(problem.sums)
    plain, inner, cut = best_trees(
        bins.codes, bins.n_codes, rows, problem.sums, problem.size, problem.least, problem.penalty, causes
    )
    whole = float(gain_of_leaf(problem.sums[rows].sum(0), problem.penalty, causes))
    best: dict[int, tuple[float, Rules]] = {1: (whole, STUMP)}
    low, high = (np.where(np.isfinite(plain[..., side]), plain[..., side], -np.inf) for side in (0, 1))
    tables = {
        (False, False): (2, low + high),
        (True, False): (3, inner[..., 0] + high),
        (False, True): (3, low + inner[..., 1]),
        (True, True): (4, inner[..., 0] + inner[..., 1]),
    }
    for (cut_low, cut_high), (n_leaves, table) in tables.items():
        at = np.unravel_index(int(np.argmax(table)), table.shape)
        if not np.isfinite(table[at]) or table[at] <= best.get(n_leaves, (-np.inf,))[0]:
            continue
        child = [bins.rules[f][c] if f >= 0 else None for f, c in cut[at]]
        rules = (bins.rules[at[0]][int(at[1])], child[1] if cut_high else None, child[0] if cut_low else None)
        best[n_leaves] = (float(table[at]), rules)
    promise = np.maximum.reduce([table for _, table in tables.values()])
    order = np.argsort(-promise, axis=None, kind="stable")[:BEAM]
    roots = [(int(f), int(c)) for f, c in zip(*np.unravel_index(order, promise.shape), strict=True)]
    return best, [root for root in roots if np.isfinite(promise[root])]
