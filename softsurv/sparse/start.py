"""The tree of corrections to start from: on binned features, exact to depth two, a beam of roots above it.

One regression is fitted to all rows. A leaf may correct its level and its shape; what that gains in log-likelihood is,
to second order, a function of five sums over the leaf's rows for each cause (`kernels`). So all pairs of splits can be
compared by histograms of pairs of features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.sparse.kernels import best_trees, causes_of, gain_of
from softsurv.sparse.splits import SplitData, orders_of_levels, short_between
from softsurv.trees.linear_rule import LinearRule, Rules

N_BINS = 12
"""Bins of a number: every cut is looked at later, when the rules are polished."""

MAX_FEATURES = 24
"""The pairs of so many features are compared, those that gain most alone; pairs of all would cost their square."""

BEAM = 8
"""Roots that are tried above trees of depth two."""

STUMP: Rules = (None, None, None)


@dataclass(frozen=True)
class Bins:
    """Features as small integers.

    Attributes
    ----------
    codes : (F, N) int16
    n_codes : (F,) int
    rules : tuple of tuple of LinearRule
        For each feature and code the rule "above this code".
    """

    codes: NDArray[np.int16]
    n_codes: IntArray
    rules: tuple[tuple[LinearRule, ...], ...]


@dataclass(frozen=True)
class Problem:
    """What the trees of one set of rows are compared on.

    Attributes
    ----------
    data : SplitData
    rows : (n,) int
        Training rows.
    sums : (N, 5 K)
        Slopes and curvatures of each row for each cause, as in `kernels`.
    size : (N,)
        What ``least`` counts in every leaf.
    least, penalty : float
    """

    data: SplitData
    rows: IntArray
    sums: FloatArray
    size: FloatArray
    least: float
    penalty: float


def bins_of(problem: Problem, n_bins: int = N_BINS, most: int | None = MAX_FEATURES) -> Bins:
    """Numbers in quantile bins of the training rows, levels of a category by their corrections.

    Of more than ``most`` features those that gain most alone.
    """
    data, rows = problem.data, problem.rows
    codes, rules = [], []
    for column in data.single:
        values = data.values[column]
        known = np.unique(values[rows])
        if len(known) > n_bins:
            edges = np.unique(np.quantile(values[rows], np.arange(1, n_bins) / n_bins, method="lower"))
        else:
            edges = known[:-1]
        edges = edges[edges < known[-1]]
        if not len(edges):
            continue
        above = known[np.searchsorted(known, edges, side="right")]
        codes.append(np.searchsorted(edges, values, side="left"))
        cuts = (short_between(float(a), float(b)) for a, b in zip(edges, above, strict=True))
        rules.append(tuple(LinearRule((column,), (1.0,), cut) for cut in cuts))
    for columns in data.categories:
        indicators = data.values[list(columns)]
        for order in orders_of_levels(indicators[:, rows], problem.sums[rows], problem.penalty):
            if len(order) < 2:
                continue
            code = np.zeros(data.values.shape[1], dtype=np.int64)
            for place, level in enumerate(order):
                code[indicators[level] > 0] = place
            codes.append(code)
            above_each = [tuple(sorted(columns[level] for level in order[k + 1 :])) for k in range(len(order) - 1)]
            rules.append(tuple(LinearRule(chosen, (1.0,) * len(chosen), 0.5) for chosen in above_each))
    table = np.array(codes, dtype=np.int16).reshape(len(codes), data.values.shape[1])
    bins = Bins(table, np.array([len(r) + 1 for r in rules], dtype=np.int64), tuple(rules))
    return bins if most is None else _strongest(problem, bins, most)


def _strongest(problem: Problem, bins: Bins, most: int) -> Bins:
    """The features that gain most alone, where there are many."""
    if len(bins.rules) <= most:
        return bins
    how = (problem.rows, problem.sums, problem.size, problem.least, problem.penalty, causes_of(problem.sums))
    gains = [
        float(best_trees(bins.codes[f : f + 1], bins.n_codes[f : f + 1], *how)[0].sum(-1).max(initial=-np.inf))
        for f in range(len(bins.rules))
    ]
    kept = np.sort(np.argsort(gains)[-most:])
    return Bins(bins.codes[kept], bins.n_codes[kept], tuple(bins.rules[f] for f in kept))


def never() -> bool:
    """Nothing to stop for."""
    return False


def trees_of_corrections(problem: Problem, depth: int, stop: Callable[[], bool] = never) -> dict[int, Rules]:
    """Rules of the best trees found with 2, 3, ... leaves, as many as the rows allow, to a depth of at most 3.

    Once ``stop`` says so, no further roots are tried.
    """
    bins = bins_of(problem)
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


def _two_levels(
    problem: Problem, bins: Bins, rows: IntArray
) -> tuple[dict[int, tuple[float, Rules]], list[tuple[int, int]]]:
    """Best trees of depth two over some rows by number of leaves, with their gains; and the most promising roots."""
    causes = causes_of(problem.sums)
    plain, inner, cut = best_trees(
        bins.codes, bins.n_codes, rows, problem.sums, problem.size, problem.least, problem.penalty, causes
    )
    whole = float(gain_of(problem.sums[rows].sum(0), problem.penalty, causes))
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
        rules = (bins.rules[at[0]][at[1]], child[1] if cut_high else None, child[0] if cut_low else None)
        best[n_leaves] = (float(table[at]), rules)
    promise = np.maximum.reduce([table for _, table in tables.values()])
    order = np.argsort(-promise, axis=None, kind="stable")[:BEAM]
    roots = [(int(f), int(c)) for f, c in zip(*np.unravel_index(order, promise.shape), strict=True)]
    return best, [root for root in roots if np.isfinite(promise[root])]
