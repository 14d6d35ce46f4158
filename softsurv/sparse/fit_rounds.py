"""Whole rounds of L-BFGS over leaf models in one compiled loop (`fit_kernels`), where it can be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.soft.one_pass import arrays, baseline_of, code_of, is_compiled
from softsurv.soft.optimisers import Rounds
from softsurv.sparse import fit_kernels
from softsurv.sparse.leaf_metric import JointMetric, LeafMetric, Leaves, OwnSlopesMetric

PRODUCTS_A_CALL = 2**26
"""Multiplications of one call, which takes some hundredths of a second. The time limit is checked between calls."""

ROUNDS_A_SORT = 8
"""Least rounds of a tree in a call, which first sorts its rows: with 2,000 rows of 1,000 columns that takes as long as
four rounds."""

OWN_PRODUCTS = 32
"""Cost of the loss of a row beside its columns, in multiplications."""

MOST_NUMBERS = 2**24
"""Largest design, in numbers, that is copied and sorted by leaf: 128 MiB. Larger ones are fitted round by round."""

MANY_COLUMNS = 64
"""From so many columns on, those are looked for that are mostly 0, such as the levels of a category of hundreds."""

MOSTLY_ZERO = 0.125
"""Largest share of numbers other than 0 in such a column."""

SHARED_TABLE = 5
"""Place of the parameters ``at`` among the tables of a metric (`fit_kernels.next_step`): the same for every tree."""


def rounds_of(leaves: Leaves, metric: LeafMetric) -> Rounds | None:
    """Whole rounds of a fit.

    None where the loops lack the leaves' family or kind of censoring, or the table is too large to be copied.
    """
    p = leaves.problem
    link, baseline = code_of(p.family.link), baseline_of(p.family)
    if link is None or baseline is None or not p.right_censored or not is_compiled(p.design, p.weight):
        return None
    sparse, numbers = mostly_zero(p.design)
    if numbers > MOST_NUMBERS:
        return None
    few, design = parted(p.design, sparse)
    rows = arrays(design, p.features, p.event[:, 0], p.weight[:, 0], leaves.leaf)
    penalties = tuple(arrays(leaves.strength, leaves.free, leaves.ridge))
    guess, trees = tuple(arrays(*_tables(metric, p.weight))), len(leaves.leaf)
    of_tree = leaves.leaf[0].numel() * (design.shape[-1] + OWN_PRODUCTS) + len(few[-1]) // len(design)
    together = PRODUCTS_A_CALL // max(trees * of_tree, 1)
    # where rounds of all trees take long, each has its own calls: a sort then serves several rounds
    apart = trees > 1 and together < ROUNDS_A_SORT
    at_once = max(PRODUCTS_A_CALL // max(of_tree, 1), ROUNDS_A_SORT) if apart else max(together, ROUNDS_A_SORT)

    def rounds(state: tuple[Any, ...], limits: tuple[float, ...], most: int, stop: Callable[[], bool]) -> int:
        """Take rounds of the trees that still move: of all in one call, or of each in a call of its own."""
        count, tables = min(at_once, most), (state, few, rows, penalties, guess)
        for tree in np.flatnonzero(state[-1]) if apart else [None]:
            if stop():
                break
            moved, sparse, own, held, metric_ = tables if tree is None else _of_tree(tables, int(tree), trees)
            fit_kernels.fit_rounds(moved, limits, count, link, baseline, sparse, *own, held, metric_)
        return count

    return rounds


def _of_tree(tables: Sequence[Sequence[NDArray[Any]]], tree: int, trees: int) -> list[tuple[NDArray[Any], ...]]:
    """One tree's part of tables of M trees or of G groups of equally many; tables that all trees share stay whole."""

    def part(table: NDArray[Any]) -> NDArray[Any]:
        at = tree * len(table) // trees
        return table[at : at + 1]

    moved, (place, begin, column, value), *others, guess = tables
    metric = tuple(table if k == SHARED_TABLE else part(table) for k, table in enumerate(guess))
    few = place, part(begin), column, value
    return [tuple(map(part, moved)), few, *(tuple(map(part, of_kind)) for of_kind in others), metric]


def mostly_zero(design: Tensor) -> tuple[BoolArray, int]:
    """Which columns have few numbers other than 0 (Q,), and how many numbers `parted` then keeps of a group at most."""
    _, rows, columns = design.shape
    if columns < MANY_COLUMNS:
        return np.zeros(columns, dtype=bool), rows * columns
    count = np.array([np.count_nonzero(part, axis=0) for part in design.detach().numpy()])  # (G, Q)
    few = count.max(axis=0) <= MOSTLY_ZERO * rows
    return few, int(rows * np.count_nonzero(~few) + count[:, few].sum(axis=1).max())


def parted(design: Tensor, few: BoolArray) -> tuple[tuple[NDArray[Any], ...], Tensor]:
    """The numbers other than 0 in the ``few`` columns, as `fit_kernels.fit_rounds` takes them, and the other columns.

    Returns
    -------
    few : place (Q,), begin (G, N + 1), column (E,), value (E,)
    design : Tensor (G, N, D)
    """
    groups, rows, columns = design.shape
    table, begin = design.detach().numpy(), np.zeros((groups, rows + 1), dtype=np.int64)
    if not few.any():
        return (np.arange(columns), begin, np.zeros(0, dtype=np.int64), np.zeros(0)), design
    columns_of, values, count = list[IntArray](), list[FloatArray](), 0
    for g, part in enumerate(table):
        row, column = np.nonzero(part)
        row, column = row[few[column]], column[few[column]]
        begin[g] = count + np.searchsorted(row, np.arange(rows + 1))
        columns_of.append(column)
        values.append(part[row, column])
        count += len(row)
    place = np.concatenate([np.flatnonzero(~few), np.flatnonzero(few)])
    dense = torch.from_numpy(np.ascontiguousarray(table[:, :, ~few]))
    return (place, begin, np.concatenate(columns_of), np.concatenate(values)), dense


def _tables(metric: LeafMetric, like: Tensor) -> tuple[Tensor, ...]:
    """The metric as `fit_kernels.next_step` takes it."""
    if isinstance(metric, OwnSlopesMetric):
        m, n_leaves, size, _ = metric.of_leaf.shape
        at, free = torch.arange(size), torch.ones(m, size, dtype=torch.bool)
        unit, scale = like.new_ones(m, size), like.new_zeros(m, n_leaves, size)
        return metric.common, like.new_zeros(m, 0), unit, scale, metric.of_leaf, at, free, metric.coupling
    full, groups = metric.inverse.dim() == 3, len(metric.inverse)
    m, n_leaves, size = metric.scale.shape
    matrix = metric.inverse if full else like.new_zeros(groups, 0, 0)
    diagonal = like.new_zeros(groups, 0) if full else metric.inverse
    alone = like.new_zeros(m, 0, 0, 0)
    if isinstance(metric, JointMetric):
        own = metric.unit[:, 0], metric.scale, metric.of_leaf, metric.at, metric.free[:, 0]
        return matrix, diagonal, *own, alone
    at = like.new_zeros(0).long()
    unit = like.new_ones(m, size - metric.columns)
    own = unit, metric.scale, like.new_zeros(m, n_leaves, 0, 0), at, like.new_zeros(m, 0).bool()
    return matrix, diagonal, *own, alone
