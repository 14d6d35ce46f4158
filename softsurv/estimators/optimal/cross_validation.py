"""Size, cost per leaf and shrinkage of an optimal tree by repeated cross-validation: all from one path per fold."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.canonical import column_order
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning
from softsurv.estimators.optimal.level_order import add_level_orders
from softsurv.estimators.optimal.parameters import AUTO_DEPTH, AUTO_LEAVES, OptimalParameters, score_of, size_limits
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import SEARCHES, TreeSearch
from softsurv.estimators.optimal.sizes import FoldPath, Size, compared
from softsurv.exact.memory import Room, bytes_of
from softsurv.results import Status
from softsurv.stopping import StopSignal

FOLDS = 5
"""Folds, as in the papers; fewer where there are fewer events."""

REPEATS = 2
"""Divisions into folds: ten differences say more of their spread than five."""

STRENGTHS = (5.0, 10.0, 20.0, 40.0, 80.0)
"""Events that a leaf may take from above."""

ERRORS = 2.0
"""A size is as good as the best up to so many standard errors of their paired difference, and the largest such size is
taken: shrinkage already forgives what a larger tree overfits. Over ten sets of SurvSet concordance is .631 and the
Brier score .184; by the least loss .613 and .188, by one standard error .622 and .187, by three .630 and .185."""

GROWN_DEPTH, GROWN_COLUMNS = 4, 100
"""Where the largest tree of `AUTO_DEPTH` is chosen, and there are at most so many 0/1 columns, trees of this depth with
any number of leaves are compared too: with more columns each of them may take seconds. They are taken only where they
are clearly better, as eight leaves are read more easily than sixteen. Over nine large sets of SurvSet concordance is
.677 and the Brier score .119; .673 and .121 without them (`bench_survset.py --collection large`, `optimal` beside
`optimal:max_depth=3,tune=cv`; two cores of an AMD EPYC, 2026-11-25)."""

UNTRIED_DEPTH = 2
"""Depth of the tree where time allowed no comparison."""

KEPT_SHARE = 0.1
"""Share of the room that the caches of all folds may keep while another fold is searched."""

FOLDS_SHARE = 0.7
"""Share of the room for rows and searches of folds; folds that do not fit are made anew at every depth."""


@dataclass(frozen=True)
class SizeChoice:
    """What cross-validation chose.

    Attributes
    ----------
    depth, leaves : int
        Limits for the tree of all rows.
    complexity : float
        Its cost per leaf.
    shrinkage : float
    table : DataFrame
        Of every setting: mean number of leaves and held-out loss, its mean difference to the best limit on the leaves
        with the standard error; best first.
    status : Status
        OPTIMAL, or why some sizes were not tried.
    """

    depth: int
    leaves: int
    complexity: float
    shrinkage: float
    table: pd.DataFrame
    status: Status


def choose_size(
    data: SurvivalData, binarizer: Binarizer, p: OptimalParameters, leaf: str, seed: int, timer: StopSignal, room: Room
) -> SizeChoice:
    """Try depths, numbers of leaves, costs per leaf and shrinkage within the limits on event-stratified folds.

    The rows are in their own order (`softsurv.data.canonical`), so that the folds depend on the content alone. Cuts,
    levels and leaf values are learned on the training part of each fold, whose one path of sizes serves all settings.
    """
    n_folds = min(FOLDS, max(data.n_failed_subjects, 2))
    folds = [fold for repeat in range(REPEATS) for fold in data.folds(n_folds, seed + repeat)]
    making = _Folds(data, binarizer, p, leaf, folds, room)
    strengths = STRENGTHS if p.shrinkage == "auto" else (float(p.shrinkage),)
    depth_limit, leaf_limit = size_limits(p)
    assert depth_limit is not None
    status, losses, n_leaves = Status.OPTIMAL, dict[Size, FloatArray](), dict[Size, float]()
    for depth in range(depth_limit + 1):
        most = min(leaf_limit or 2**depth, 2**depth)
        if most <= depth:
            break
        paths = list[FoldPath]()
        for number in range(len(folds)):
            status = timer.status or making.add_path(paths, number, depth, most, timer, strengths)
            if status != Status.OPTIMAL:
                break
        if status != Status.OPTIMAL:
            break
        for size, mean, loss in compared(paths, depth, most, p.complexity, strengths, priced=p.complexity == 0):
            losses[size], n_leaves[size] = loss, mean
    if not losses:
        single = Size(0, 1, p.complexity, strengths[0])
        losses, n_leaves = {single: np.array([np.nan])}, {single: 1.0}
    choice = _in_time(choice_among(losses, n_leaves, status), p, strengths, {size.depth for size in losses})
    if not _may_grow(choice, p, binarizer):
        return choice
    grown = making.grown(timer, strengths)
    for s, strength in enumerate(strengths if grown.status == Status.OPTIMAL else ()):
        size = Size(GROWN_DEPTH, 2**GROWN_DEPTH, p.complexity, strength)
        losses[size], n_leaves[size] = np.array(grown.losses)[:, s], float(np.mean(grown.n_leaves))
    return choice_among(losses, n_leaves, grown.status, limit=depth_limit)


def _may_grow(choice: SizeChoice, p: OptimalParameters, binarizer: Binarizer) -> bool:
    """Whether the choice is the largest tree that was compared, and larger ones are found soon."""
    largest = p.max_depth == "auto" and (choice.depth, choice.leaves) == (AUTO_DEPTH, AUTO_LEAVES)
    n_columns = sum(len(column.splits) for column in binarizer.columns_)
    plain = p.objective == "relative_risk" and choice.complexity == p.complexity
    return largest and plain and choice.status == Status.OPTIMAL and n_columns <= GROWN_COLUMNS


def _in_time(choice: SizeChoice, p: OptimalParameters, strengths: Sequence[float], depths: set[int]) -> SizeChoice:
    """The choice; where time ended the comparison early, the choice among what was compared."""
    depth_limit, leaf_limit = size_limits(p)
    assert depth_limit is not None
    ran_out = choice.status == Status.TIME_LIMIT
    if ran_out and depth_limit > 0 and not any(depths):
        # no split was compared in time: a small tree, well shrunk, rather than none
        depth, shrinkage = min(UNTRIED_DEPTH, depth_limit), strengths[-1]
        return replace(choice, depth=depth, leaves=min(leaf_limit or 2**depth, 2**depth), shrinkage=shrinkage)
    if p.max_depth == "auto" and ran_out and 0 < choice.depth == max(depths) < depth_limit:
        # larger was better as long as there was time; where the user set no limit, one depth more is taken
        deeper = choice.depth + 1
        return replace(choice, depth=deeper, leaves=min(leaf_limit or 2**deeper, 2**deeper))
    return choice


class GrownTrees(NamedTuple):
    """The best deeper tree of each fold: its held-out loss for each strength of shrinkage, and its number of leaves."""

    losses: list[list[float]]
    n_leaves: list[int]
    status: Status


class _Folds:
    """Searches over the training parts of folds, with the rows held out; as many as there is room for are kept."""

    def __init__(
        self,
        data: SurvivalData,
        binarizer: Binarizer,
        p: OptimalParameters,
        leaf: str,
        folds: list[tuple[IntArray, IntArray]],
        room: Room,
    ) -> None:
        self.data, self.binarizer, self.p, self.leaf, self.folds, self.room = data, binarizer, p, leaf, folds, room
        self.kept: dict[int, tuple[TreeSearch, Rows]] = {}
        self.most = len(folds)  # to be kept

    @cached_property
    def columns(self) -> list[str]:
        """Names of the features in their own order; of thousands that takes seconds, so only where there is time."""
        return column_order(self.data.X, self.data)

    def add_path(
        self, paths: list[FoldPath], number: int, depth: int, leaves: int, timer: StopSignal, strengths: Sequence[float]
    ) -> Status:
        """Add the best trees of a fold with 1, 2, ... leaves and their held-out losses; how the search ended."""
        search, held_out = self.fold(number)
        sizes, status = search.path(depth, leaves, timer.left)
        search.rest(KEPT_SHARE * self.room.left / len(self.folds))
        if status == Status.OPTIMAL:
            losses = [search.held_out(size.tree, held_out, strengths, score_of(self.p)) for size in sizes]
            paths.append(FoldPath.of(sizes, losses))
        return status

    def grown(self, timer: StopSignal, strengths: Sequence[float]) -> GrownTrees:
        """The best tree of `GROWN_DEPTH` of each fold with its held-out losses, as far as time allows."""
        found = GrownTrees([], [], Status.OPTIMAL)
        for number in range(len(self.folds)):
            search, held_out = self.fold(number)
            best = search.best(GROWN_DEPTH, None, timer.left, None)
            search.rest(KEPT_SHARE * self.room.left / len(self.folds))
            status = timer.status or best.report.status
            if status != Status.OPTIMAL:
                return found._replace(status=status)
            found.losses.append(search.held_out(best.tree, held_out, strengths, score_of(self.p)))
            found.n_leaves.append(best.tree.n_leaves)
        return found

    def fold(self, number: int) -> tuple[TreeSearch, Rows]:
        """The search over the training rows of a fold, and the rows held out."""
        if number in self.kept:
            return self.kept[number]
        train, test = self.folds[number]
        with warnings.catch_warnings():  # levels that a fold lacks say nothing to the user
            warnings.simplefilter("ignore", DataWarning)
            fitted = Binarizer(**self.binarizer.get_params())
            table, part = fitted.fit_filled(self.data.X.iloc[train], order=self.columns)[0], self.data.take(train)
            if self.p.level_sets:
                add_level_orders(fitted, table, part)
            search = SEARCHES[self.p.objective](Rows.of(part, fitted), self.p, self.leaf, self.room)
            made = search, Rows.of(self.data.take(test), fitted)
        size = search.held + bytes_of(search.rows, made[1])
        if not self.kept:  # all folds are about as large
            free = FOLDS_SHARE * self.room.left - 2 * bytes_of(self.data.X)  # two copies while a fold is made
            self.most = min(max(int(free / size), 0), len(self.folds))
        others = (self.most - (number < self.most)) * size + KEPT_SHARE * self.room.left
        search.limit_to(self.room.beside(search.rows, made[1]).less(others))
        if len(self.kept) < self.most:
            self.kept[number] = made
        return made


def choice_among(
    losses: dict[Size, FloatArray], n_leaves: dict[Size, float], status: Status, limit: int | None = None
) -> SizeChoice:
    """The largest size as good as the best, of those the one of least loss; one leaf where no split does better.

    A cost per leaf beside those of the limits is taken only where it is clearly better than every limit: sizes that
    are as good are then chosen as without it. So are trees deeper than ``limit``, where they are clearly better than
    what would be chosen without them. ``losses`` (F,) and ``n_leaves``, the mean number, are those of every setting.
    """
    mean = {size: float(loss.mean()) for size, loss in losses.items()}
    ranked = sorted(losses, key=lambda size: (mean[size], n_leaves[size], size.depth, size.leaves, -size.shrinkage))
    usual = [size for size in ranked if limit is None or size.depth <= limit]
    least = min(size.complexity for size in usual)  # of the limits
    best = next(size for size in usual if size.complexity == least)
    difference = {size: losses[size] - losses[best] for size in ranked}
    error = {size: _standard_error(some) for size, some in difference.items()}
    chosen, ahead = best, usual[0]
    if ahead != best and difference[ahead].mean() < -ERRORS * error[ahead]:
        chosen = ahead
    elif n_leaves[best] > 1:
        limits = [size for size in usual if size.complexity == least]
        good = [size for size in limits if difference[size].mean() <= ERRORS * error[size]]
        most = max((n_leaves[size], size.leaves) for size in good)
        chosen = next(size for size in good if (n_leaves[size], size.leaves) == most)
    deeper = next((size for size in ranked if size not in usual), chosen)
    gained = losses[chosen] - losses[deeper]
    if gained.mean() > ERRORS * _standard_error(gained):
        chosen = deeper
    table = [
        {
            "max_depth": size.depth,
            "max_leaves": size.leaves,
            "complexity": size.complexity,
            "shrinkage": size.shrinkage,
            "leaves": n_leaves[size],
            "loss": mean[size],
            "difference": float(difference[size].mean()),
            "error": error[size],
            "chosen": size == chosen,
        }
        for size in ranked
    ]
    return SizeChoice(*chosen, pd.DataFrame(table), status)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
