"""The best rule of few terms at one branch node: a cut of a feature, a set of levels, or a direction over several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.numerics import spread
from softsurv.sparse.cut_kernels import best_pair, cut_gains
from softsurv.sparse.kernels import causes_of
from softsurv.sparse.short_numbers import CLOSE, short_number
from softsurv.sparse.splits import BestRule, NodeRows, orders_of_levels, sums_of_levels
from softsurv.trees.linear_rule import LinearRule

RATIOS = np.array([sign * ratio for ratio in (0.2, 0.4, 0.7, 1.0, 1.4, 2.5, 5.0) for sign in (1, -1)])
"""Coefficients that are tried for a second term, in units of the features' standard deviations."""

FINER = np.array([0.75, 0.87, 1.0, 1.15, 1.33])
"""Factors by which the best ratio is then varied."""

PAIR_COLUMNS, PAIR_ROWS = 7, 1000
"""Number of features, those that split best alone, that make up directions; most rows on which these are compared."""

NEARER = 0.8, 0.9, 0.95, 1.05, 1.1, 1.25
"""Factors by which the coefficients of a direction are then varied, on all rows."""

EVEN = 0.8, 1.25
"""Between these a coefficient is also tried as one."""


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
        best = _better_ratios(rows, best)
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


def _better_ratios(rows: NodeRows, best: BestRule) -> BestRule:
    """A direction with its coefficients varied, where all rows say so: directions are compared on some rows, in bins.

    A ratio that is off by a tenth costs a fold of thousands of rows more than a further split gains, and larger trees
    are taken than the rows have.
    """
    if best.cut is None or not set(best.rule.columns) & set(rows.data.single):
        return best
    for k in range(1, len(best.rule.columns)):
        own = best.rule.coefficients
        tried = {short_number(own[k] * factor) for factor in NEARER}
        if EVEN[0] <= abs(own[k]) <= EVEN[1]:
            tried.add(math.copysign(1.0, own[k]))
        for value in sorted(tried - {own[k]}):
            rule = replace(best.rule, coefficients=(*own[:k], value, *own[k + 1 :]))
            cut = rows.cut(rule, -1.0 if best.swap else 1.0)
            if cut.gain > best.gain:
                best = BestRule(rule, cut.gain, best.swap, cut)
    return best
