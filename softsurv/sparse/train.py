"""Trees of rules as stacks: rules and leaves improved in turn, many trees at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.soft.parallel import map_parts
from softsurv.soft.problem import taken
from softsurv.sparse.best_rule import best_rule
from softsurv.sparse.causes import Models, Problems, fit_causes, losses_of_causes, second_orders, take
from softsurv.sparse.leaf_fit import ROUGH, LeafPenalties
from softsurv.sparse.on_host import on_host
from softsurv.sparse.splits import NodeRows, SplitData
from softsurv.sparse.start import (
    NumberBins,
    StartProblem,
    never,
    number_bins,
    tree_grown_on,
    trees_of_corrections,
)
from softsurv.stopping import StopSignal
from softsurv.trees.linear_rule import LinearRule, Rules, answers_of, leaf_below, leaf_of, rows_at

START_ROWS = 4000
"""Most rows on which the trees to start from are compared. The rules are polished on all rows."""

Start = tuple[IntArray, NumberBins]
"""Rows on which trees to start from are compared, and the numbers in bins of these rows."""


@dataclass(frozen=True)
class StackRows:
    """The rows, folds and limits that all trees of a stack share.

    Attributes
    ----------
    split : SplitData
    weight : (N,)
        Case weights.
    size : (N,)
        1 for rows with an event: ``least`` counts events.
    folds : tuple of (n,) int
        Training rows of each fold.
    least : float
        Least size of a leaf.
    penalty : float
        Penalty of a leaf's correction of level and shape while splits are compared.
    counts : (K,), optional
        Factor of each cause in the rules and in their choice, 1 by default.
    """

    split: SplitData
    weight: FloatArray
    size: FloatArray
    folds: tuple[IntArray, ...]
    least: float
    penalty: float
    counts: FloatArray | None = None
    _starts: dict[int, Start] = field(default_factory=dict, repr=False, compare=False)

    def start_of(self, fold: int) -> Start:
        """Rows of a fold on which the trees to start from are compared, of many a sample, and their bins; kept."""
        if (known := self._starts.get(fold)) is not None:
            return known
        mine = self.folds[fold]
        if len(mine) > START_ROWS:
            mine = np.sort(np.random.default_rng(0).choice(mine, START_ROWS, replace=False))
        return self._starts.setdefault(fold, (mine, number_bins(self.split, mine)))


@dataclass(frozen=True)
class Plan:
    """A tree to be trained: on which fold, with which penalties and limits, from which rules."""

    fold: int
    ridge: float
    baseline: float
    max_terms: int
    rules: Rules
    slopes: float | None = None

    @property
    def size(self) -> int:
        """Number of splits."""
        return sum(rule is not None for rule in self.rules)


@dataclass(frozen=True)
class Grown:
    """Trees of one depth after training.

    Attributes
    ----------
    rules : tuple of Rules (M,)
    leaf : Tensor (M, N)
        The leaf of every row, on the host.
    models : tuple of Tensor (M, 1 + L, Q + K)
        For each cause.
    loss : Tensor (M,)
        Penalised mean loss of the training rows, summed over the causes with their factors; on the host.
    """

    rules: tuple[Rules, ...]
    leaf: Tensor
    models: Models
    loss: Tensor

    def better(self, other: Grown, trees: Tensor) -> Grown:
        """The trees, with those numbered ``trees`` (m,) replaced by the m trees of ``other`` where these are better."""
        better = np.flatnonzero((other.loss < self.loss[trees]).numpy())
        if not better.size:
            return self
        rules, own = list(self.rules), torch.as_tensor(better)
        at = trees[own]
        for k, tree in zip(better.tolist(), at.tolist(), strict=True):
            rules[tree] = other.rules[k]

        def joined(old: Tensor, new: Tensor) -> Tensor:
            return old.index_copy(0, at.to(old.device), taken(new, own))

        models = tuple(joined(old, new) for old, new in zip(self.models, other.models, strict=True))
        return Grown(tuple(rules), joined(self.leaf, other.leaf), models, joined(self.loss, other.loss))


def penalties_of(n_rows: FloatArray, ridge: object, baseline: object, slopes: object) -> LeafPenalties:
    """Penalties in units of one row for trees on ``n_rows`` (M,) rows; with ``slopes`` None the leaves share slopes."""

    def each(value: object) -> Tensor:
        return torch.as_tensor(np.broadcast_to(np.asarray(value, dtype=float), n_rows.shape) / n_rows)

    return LeafPenalties(each(ridge), each(baseline), each(np.inf if slopes is None else slopes))


def start_rules(
    problems: Problems,
    rows: StackRows,
    folds: Sequence[int],
    models: Models,
    depth: int,
    workers: int = 1,
    stop: Callable[[], bool] = never,
) -> list[dict[int, Rules]]:
    """Rules to start from by number of leaves, for each fold with its single-leaf models (M, 1, Q + K).

    Once ``stop`` is True, the trees found so far are returned, and none for the other folds.
    """
    table = corrections(problems, models, rows)

    def start(m: int) -> dict[int, Rules]:
        return {} if stop() else trees_of_corrections(start_problem(rows, folds[m], table[m]), depth, stop)

    return map_parts(start, range(len(folds)), workers)


def start_problem(rows: StackRows, fold: int, table: FloatArray) -> StartProblem:
    """The problem by which trees on a fold are compared. Of many rows a sample is enough to compare binned cuts."""
    mine, numbers = rows.start_of(fold)
    scale = len(rows.folds[fold]) / len(mine)
    return StartProblem(rows.split, mine, table, rows.size, rows.least / scale, rows.penalty / scale, numbers)


def grown_on(
    problems: Problems,
    rows: StackRows,
    plans: Sequence[Plan],
    n_leaves: int,
    models: Models,
    stop: Callable[[], bool] = never,
) -> list[Rules | None]:
    """Larger trees: the rules of the plans, with leaves split further up to ``n_leaves``.

    The arguments are those of :func:`grow`, except ``models`` (M, 1, Q + K): the common models of the smaller trees.
    None stands for a tree that the rows do not allow, or that was not tried before ``stop``.
    """
    table = corrections(take(problems, torch.as_tensor([plan.fold for plan in plans])), models, rows)
    return [
        None if stop() else tree_grown_on(start_problem(rows, plan.fold, own), plan.rules, n_leaves)
        for plan, own in zip(plans, table, strict=True)
    ]


def corrections(problems: Problems, models: Models, rows: StackRows) -> FloatArray:
    """Weighted slopes and curvatures (M, N, 5 K) at the common models, which give the corrections of leaves."""
    return on_host([second_orders(problems, models, rows.counts)])[0] * rows.weight[:, None]


def grow(
    problems: Problems,
    rows: StackRows,
    plans: Sequence[Plan],
    n_rows: FloatArray,
    sweeps: int = 2,
    budget: StopSignal | None = None,
    models: Models | None = None,
    workers: int = 1,
) -> Grown:
    """Fit the leaves and improve the rules in turn; the trees have one depth.

    A rule is improved by its gain to second order, so the loss after the next fit of the leaves may be higher. Of each
    tree the state with the least loss is returned. Leaves are fitted on the device of the problems and rules on the
    host, which waits for the device once in a sweep, for the losses, slopes and curvatures of the trees whose rules
    have not settled yet.

    Parameters
    ----------
    problems : tuple of Problem
        For each cause a problem of one tree for each fold.
    rows : StackRows
    plans : sequence of Plan
    n_rows : (folds,)
        Training rows of each fold.
    sweeps : int
        How often every rule is improved; 0 fits the leaves alone.
    budget : StopSignal, optional
        Once it is exhausted, the rules stay as they are.
    models : tuple of Tensor (M, 1 + L, Q + K), optional
        At which the fits of the leaves begin.
    workers : int
        Threads that seek rules, each those of a tree.
    """
    fold = np.array([plan.fold for plan in plans])
    stack = take(problems, torch.as_tensor(fold))
    slopes = [np.inf if p.slopes is None else p.slopes for p in plans]
    penalties = penalties_of(n_rows[fold], [p.ridge for p in plans], [p.baseline for p in plans], slopes)
    rules = [plan.rules for plan in plans]
    everyone, n_leaves = torch.arange(len(plans)), len(rules[0]) + 1
    moving, best = np.ones(len(plans), dtype=bool), None

    def stop() -> bool:
        return budget is not None and budget.exhausted

    def improved(job: tuple[int, FloatArray, FloatArray]) -> Rules:
        tree, losses, table = job
        plan = plans[tree]
        corrections_of = table if plan.slopes is None else None
        return polish(rules[tree], rows, rows.folds[fold[tree]], losses, corrections_of, plan.max_terms, stop)

    for sweep in range(sweeps + 1):
        leaf = leaves_of(rules, rows.split)
        models, loss = fit_causes(stack, leaf, n_leaves, penalties, models, ROUGH, budget, rows.counts)
        at = [] if sweep == sweeps or stop() else np.flatnonzero(moving).tolist()
        value, *tables = on_host([loss, *(_of_moving(stack, models, rows, at) if at else ())])
        now = Grown(tuple(rules), leaf, models, torch.from_numpy(value))
        best = now if best is None else best.better(now, everyone)
        if not at:
            break
        jobs = zip(at, tables[0], tables[1] * rows.weight[:, None], strict=True)
        new = map_parts(improved, jobs, workers)
        for tree, better in zip(at, new, strict=True):
            moving[tree], rules[tree] = better != rules[tree], better
    assert best is not None
    return best


def _of_moving(stack: Problems, models: Models, rows: StackRows, trees: list[int]) -> tuple[Tensor, Tensor]:
    """Losses of every row in every leaf, (m, L, N), and `second_orders` (m, N, 5 K), of some trees of a stack."""
    if len(trees) < len(models[0]):
        at = torch.tensor(trees)
        stack, models = take(stack, at), tuple(taken(model, at) for model in models)
    return losses_of_causes(stack, models, rows.counts), second_orders(stack, models, rows.counts)


def leaves_of(rules: Sequence[Rules], split: SplitData) -> Tensor:
    """Leaf of each row in each tree, (M, N)."""
    return torch.as_tensor(np.array([leaf_of(one, split.values) for one in rules]))


def polish(
    rules: Rules,
    rows: StackRows,
    mine: IntArray,
    losses: FloatArray,  # (L, N) of every row in every leaf
    table: FloatArray | None,  # (N, 5 K) slopes and curvatures at the common models
    max_terms: int,
    stop: Callable[[], bool] = never,
) -> Rules:
    """Improve every rule in turn, the root first, the other rules and the leaves' models being fixed.

    A rule between two leaves is judged by the best corrections of level and shape on its two sides. Leaves with slopes
    of their own differ in more than that: without a ``table`` it is judged by the losses in both leaves.
    """
    if stop():
        return rules
    values, new = rows.split.values, list(rules)
    inside = np.zeros(values.shape[1], dtype=bool)
    inside[mine] = True
    answers = answers_of(rules, values)
    for node, rule in enumerate(rules):
        if new[node] is None or rule is None or stop():
            continue
        at = np.flatnonzero(rows_at(answers, node) & inside)
        if rows.size[at].sum() < 2 * rows.least:
            continue
        left, right = (leaf_below(answers[:, at], 2 * node + side) for side in (1, 2))
        if table is not None and (left == left[0]).all() and (right == right[0]).all():
            own = table[at]
        else:
            own = (rows.weight[at] * (losses[right, at] - losses[left, at]))[:, None]
        here = NodeRows(rows.split, at, np.ascontiguousarray(own), rows.size[at], rows.least, rows.penalty)
        current = new[node]
        assert current is not None
        choice = best_rule(here, current, max_terms)
        if choice.rule == current and not choice.swap:
            continue
        if choice.swap:
            swap_sides(new, node)
        new[node] = choice.rule
        answers = answers_of(tuple(new), values)
    return tuple(new)


def swap_sides(rules: list[LinearRule | None], node: int) -> None:
    """Exchange the subtrees below a node, in place."""
    left, right, width = 2 * node + 1, 2 * node + 2, 1
    while left < len(rules):
        a, b = slice(left, left + width), slice(right, right + width)
        rules[a], rules[b] = rules[b], rules[a]
        left, right, width = 2 * left + 1, 2 * right + 1, 2 * width


def held_out_losses(
    problems: Problems,
    models: Models,
    leaf: Tensor,
    weight: Tensor,
    counts: FloatArray | None = None,
    most: float = math.inf,
) -> Tensor:
    """Loss of each row in its leaf times its weight, (M, N): the sum over the causes, each times its factor (K,).

    The loss of each cause is cut at ``most``.
    """
    losses = losses_of_causes(problems, models, counts, most)
    leaf, weight = leaf.to(losses.device), weight.to(losses.device)
    return torch.where(weight > 0, losses.gather(1, leaf[:, None])[:, 0] * weight, 0.0)


def complete(rules: Rules, n_branches: int) -> Rules:
    """The rules of a deeper complete tree that sends every row the same way."""
    return (*rules, *(None,) * (n_branches - len(rules)))
