"""Size, cost per leaf and shrinkage of an optimal tree by repeated cross-validation: all from one path per fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.optimal.continued import PRICES, best_price, continued_size, price_losses
from softsurv.estimators.optimal.curve_choice import FoldTree, bytes_of_comparison, choose_curve
from softsurv.estimators.optimal.fold_searches import FoldSearches, outcomes_of
from softsurv.estimators.optimal.parameters import AUTO_DEPTH, OptimalParameters, most_leaves, score_of, size_limits
from softsurv.estimators.optimal.search import RelativeRiskSearch
from softsurv.estimators.optimal.sizes import FoldPath, Size, compared, standard_error
from softsurv.estimators.shared.on_demand import OnDemand
from softsurv.exact.memory import Room
from softsurv.results import Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

FOLDS = 5
"""Folds, as in the papers; fewer where there are fewer events."""

REPEATS = 2
"""Divisions into folds: ten differences say more of their spread than five."""

MANY_COLUMNS, MANY_ROWS = 500, 250_000
"""With more 0/1 columns, or more rows, one division: the trees of a fold take seconds."""

STRENGTHS = (1.0, 5.0, 10.0, 20.0, 40.0, 80.0)
"""Events that a leaf may take from above."""

ERRORS = 2.0
"""A size is as good as the best up to so many standard errors of their paired difference, and the largest such size is
taken: shrinkage already forgives what a larger tree overfits. Over ten sets of SurvSet concordance is .631 and the
Brier score .184; by the least loss .613 and .188, by one standard error .622 and .187, by three .630 and .185."""

SPLIT_ERRORS = 1.0
"""A tree is split at all only where the best limit is better than the single leaf by so many standard errors of their
paired difference: what shrinkage forgives on held-out rows is still a rule to whoever reads it."""

UNTRIED_DEPTH = 2
"""Depth of the tree where time allowed no comparison."""


@dataclass(frozen=True)
class SizeChoice:
    """What cross-validation chose.

    Attributes
    ----------
    depth, leaves : int or None
        Limits for the tree of all rows; None where nothing limits it.
    complexity : float
        Its cost per leaf.
    shrinkage : float
    made : OnDemand of DataFrame
        Makes ``table``.
    status : Status
        OPTIMAL, or why some sizes were not tried.
    price : float or None
        Cost per leaf at which the tree goes on below its leaves; None where it does not.
    leaf : str or None
        Curve of the leaves; None where it was not chosen.
    """

    depth: int | None
    leaves: int | None
    complexity: float
    shrinkage: float
    made: OnDemand[pd.DataFrame]
    status: Status
    price: float | None = None
    leaf: str | None = None

    @property
    def table(self) -> pd.DataFrame:
        """Every setting with its mean number of leaves and held-out loss, best first.

        Beside them the mean difference to the best limit on the leaves and its standard error.
        """
        return self.made.value

    @property
    def size(self) -> Size:
        """The limits as one setting."""
        assert self.depth is not None
        assert self.leaves is not None
        return Size(self.depth, self.leaves, self.complexity, self.shrinkage)


def choose_size(
    data: SurvivalData,
    order: IntArray,
    binarizer: Binarizer,
    p: OptimalParameters,
    leaf: str,
    seed: int,
    timer: StopSignal,
    room: Room,
) -> SizeChoice:
    """Try depths, numbers of leaves, costs per leaf and shrinkage within the limits on event-stratified folds.

    The rows are taken in their own ``order`` (N,) (`softsurv.data.canonical`), so that the folds depend on the content
    alone. Cuts, levels and leaf values are learned on the training part of each fold, whose one path of sizes serves
    all settings.
    """
    if data.n_failed_subjects < 2:
        raise InvalidSurvivalDataError(
            "event must be True in at least 2 rows to choose the size of a tree by cross-validation, got "
            f"{data.n_failed_subjects}; collect more events, or set max_depth with tune=None"
        )
    n_folds = min(FOLDS, data.n_failed_subjects)
    n_columns = sum(len(column.splits) for column in binarizer.columns_)
    repeats = REPEATS if n_columns <= MANY_COLUMNS and data.n <= MANY_ROWS else 1
    in_order = outcomes_of(data).take(order)
    folds = [
        (order[train], order[test])
        for repeat in range(repeats)
        for train, test in in_order.folds(n_folds, seed + repeat)
    ]
    making = FoldSearches(data, binarizer, p, leaf, folds, room)
    strengths = STRENGTHS if p.shrinkage == "auto" else (float(p.shrinkage),)
    depth_limit, leaf_limit = size_limits(p)
    assert depth_limit is not None
    status, losses, all_paths = Status.OPTIMAL, Losses({}, {}), dict[int, list[FoldPath]]()
    most = {depth: min(leaf_limit or 2**depth, 2**depth) for depth in range(depth_limit + 1)}
    depths = [depth for depth in most if most[depth] > depth]
    for together in (depths[:2], *([depth] for depth in depths[2:])):  # a single leaf costs no visit of the folds
        paths = {depth: list[FoldPath]() for depth in together}
        for number, depth in product(range(len(folds)), together):
            status = timer.status or making.add_path(paths[depth], number, depth, most[depth], timer, strengths)
            if status != Status.OPTIMAL:
                break
        if status != Status.OPTIMAL:
            break
        all_paths |= paths
        for depth in together:
            sizes = compared(paths[depth], depth, most[depth], p.complexity, strengths, priced=p.complexity == 0)
            for size, mean, loss in sizes:
                losses.add(size, loss, mean)
    if not all_paths:
        single = Size(0, 1, p.complexity, strengths[0])
        losses.add(single, np.array([np.nan]), 1.0)
    choice = in_time(choice_among(*losses, status), p, strengths, set(all_paths))
    if choice.status != Status.OPTIMAL or not all_paths:
        return choice
    trees = [path.tree_at(choice.size, p.complexity) for path in all_paths[choice.size.depth]]
    if _may_continue(choice, p):
        choice, trees = _continued(choice, trees, losses, making, timer, strengths)
    return _with_curve(choice, trees, making, timer, strengths)


def _may_continue(choice: SizeChoice, p: OptimalParameters) -> bool:
    """Whether the choice is as deep as the trees that were compared, and neither depth nor leaves are limited to it."""
    deepest = p.max_depth == "auto" and choice.depth == AUTO_DEPTH
    return (
        deepest
        and choice.size.leaves < most_leaves(p)
        and p.objective == "relative_risk"
        and choice.complexity == p.complexity
    )


def in_time(choice: SizeChoice, p: OptimalParameters, strengths: Sequence[float], depths: set[int]) -> SizeChoice:
    """The choice; where time ended the comparison early, the choice among what was compared."""
    depth_limit, leaf_limit = size_limits(p)
    assert depth_limit is not None
    ran_out = choice.status == Status.TIME_LIMIT
    if ran_out and depth_limit > 0 and not any(depths):
        # no split was compared in time: a small tree, well shrunk, rather than none
        depth, shrinkage = min(UNTRIED_DEPTH, depth_limit), strengths[-1]
        return replace(choice, depth=depth, leaves=min(leaf_limit or 2**depth, 2**depth), shrinkage=shrinkage)
    if p.max_depth == "auto" and ran_out:
        depth, leaves = choice.size.depth, choice.size.leaves
        if 0 < depth == max(depths) < depth_limit and leaves == min(leaf_limit or 2**depth, 2**depth):
            # larger was better as long as there was time; where the user set no limit, one depth more is taken
            return replace(choice, depth=depth + 1, leaves=min(leaf_limit or 2 * 2**depth, 2 * 2**depth))
    return choice


class Losses(NamedTuple):
    """Held-out losses (F,) of every setting, and its mean number of leaves."""

    loss: dict[Size, FloatArray]
    n_leaves: dict[Size, float]

    def add(self, size: Size, loss: FloatArray, n_leaves: float) -> None:
        """Take one setting more."""
        self.loss[size], self.n_leaves[size] = loss, n_leaves

    @property
    def ranked(self) -> list[Size]:
        """Settings, best first."""
        loss, n_leaves = self.loss, self.n_leaves
        return sorted(loss, key=lambda one: (loss[one].mean(), n_leaves[one], one.depth, one.leaves, -one.shrinkage))

    def best_limit(self) -> Size:
        """The best of the settings without a cost per leaf beside those of the limits."""
        least = min(size.complexity for size in self.loss)
        return next(size for size in self.ranked if size.complexity == least)

    def table(self, chosen: Size, beside: Size) -> OnDemand[pd.DataFrame]:
        """One row for each setting so far, best first, with differences to one of them."""
        return OnDemand(partial(Losses(dict(self.loss), dict(self.n_leaves))._table, chosen, beside))

    def _table(self, chosen: Size, beside: Size) -> pd.DataFrame:
        difference = {size: self.loss[size] - self.loss[beside] for size in self.loss}
        return pd.DataFrame(
            {
                "max_depth": size.depth,
                "max_leaves": size.leaves,
                "complexity": size.complexity,
                "shrinkage": size.shrinkage,
                "leaves": self.n_leaves[size],
                "loss": float(self.loss[size].mean()),
                "difference": float(difference[size].mean()),
                "error": float(standard_error(difference[size])),
                "chosen": size == chosen,
            }
            for size in self.ranked
        )


def choice_among(loss: dict[Size, FloatArray], n_leaves: dict[Size, float], status: Status) -> SizeChoice:
    """The largest size as good as the best, of those the one of least loss; one leaf where no split is clearly better.

    A cost per leaf beside those of the limits is taken only where it is clearly better than every limit: sizes that
    are as good are then chosen as without it. ``loss`` (F,) and ``n_leaves``, the mean number, are those of every
    setting.
    """
    losses = Losses(loss, n_leaves)
    ranked, best = losses.ranked, losses.best_limit()
    difference = {size: loss[size] - loss[best] for size in ranked}
    error = {size: float(standard_error(some)) for size, some in difference.items()}
    chosen, ahead = best, ranked[0]
    if ahead != best and difference[ahead].mean() < -ERRORS * error[ahead]:
        chosen = ahead
    elif n_leaves[best] > 1:
        limits = [size for size in ranked if size.complexity == best.complexity]
        single = next(size for size in limits if size.leaves == 1)
        worst = difference[single].mean()
        good = [size for size in limits if difference[size].mean() <= min(ERRORS * error[size], worst)]
        most = max((n_leaves[size], size.leaves) for size in good)
        chosen = next(size for size in good if (n_leaves[size], size.leaves) == most)
        if worst <= SPLIT_ERRORS * error[single]:
            chosen = single
    return SizeChoice(*chosen, losses.table(chosen, best), status)


def _continued(
    choice: SizeChoice,
    trees: list[HardTree],
    losses: Losses,
    making: FoldSearches,
    timer: StopSignal,
    strengths: Sequence[float],
) -> tuple[SizeChoice, list[HardTree]]:
    """The choice with the cost per leaf to continue at, if any, and the trees of the folds as they are then."""
    found, tried = list[list[HardTree]](), list[list[list[float]]]()
    for number in range(len(making.folds)):
        going_on = _going_on(choice, making, number, timer, strengths)
        if going_on is None:
            return replace(choice, status=timer.status or choice.status), trees
        found.append(going_on[0])
        tried.append(going_on[1])
    loss, most = np.moveaxis(np.array(tried), 0, 2), most_leaves(making.p)  # (P, S, F)
    place, usual = best_price(loss, losses.loss[choice.size]), losses.best_limit()
    for k, price in enumerate(PRICES):
        mean = float(np.mean([one[k].n_leaves for one in found]))
        for s, strength in enumerate(strengths):
            losses.add(continued_size(choice.size, price, strength, most), loss[k, s], mean)
    if place is None:
        return replace(choice, made=losses.table(choice.size, usual)), trees
    price, strength = PRICES[place[0]], strengths[place[1]]
    table = losses.table(continued_size(choice.size, price, strength, most), usual)
    return replace(choice, shrinkage=strength, made=table, price=price), [one[place[0]] for one in found]


def _going_on(
    choice: SizeChoice, making: FoldSearches, number: int, timer: StopSignal, strengths: Sequence[float]
) -> tuple[list[HardTree], list[list[float]]] | None:
    """The trees of a fold continued at each cost per leaf, and their held-out losses; None if there is no time."""
    search, held_out = making.fold(number)
    if not isinstance(search, RelativeRiskSearch) or search.search.by_cuts:
        return None
    top = search.best(choice.depth, choice.leaves, timer.left, None)
    if timer.exhausted or top.report.status != Status.OPTIMAL:
        return None
    going_on = price_losses(held_out, search, top, strengths, score_of(making.p), timer)
    making.rest(search)
    return going_on


def _with_curve(
    choice: SizeChoice,
    trees: Sequence[HardTree],
    making: FoldSearches,
    timer: StopSignal,
    strengths: Sequence[float],
) -> SizeChoice:
    """The choice with the curve of its leaves, where that is left open."""
    most, data = max(tree.n_leaves for tree in trees), making.data
    late = data.entry is not None and bool((data.entry > 0).any())
    if making.p.leaf != "auto" or making.leaf != "adaptive" or late or most == 1:
        return choice
    if bytes_of_comparison(data.n, most, len(strengths)) > making.room.left:
        return choice

    def folds() -> Iterator[FoldTree]:
        for number, tree in enumerate(trees):
            yield FoldTree.of(tree, *making.fold(number))  # no name here keeps the last one

    score = "concordance" if score_of(making.p) == "concordance" else "ibs"
    curve = choose_curve(folds(), choice.shrinkage, strengths, score, timer)
    if curve is None:
        return replace(choice, status=timer.reason)
    return replace(choice, leaf=curve[0], shrinkage=curve[1])
