"""Trees that go on below the best tree of depth three, where larger ones are clearly better for rows held out.

The best tree of depth three is proven. Below it, each split is the first of the best tree of depth two of its rows, and
what gains less than a cost per leaf is cut back. So the first splits are those of a proven tree, and those below them
are good ones: the tree as a whole is not proven, and its report says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.estimators.optimal.held_out import HeldOutRows
from softsurv.estimators.optimal.parameters import most_leaves
from softsurv.estimators.optimal.search import RelativeRiskSearch
from softsurv.estimators.optimal.sizes import Size, standard_error
from softsurv.estimators.optimal.tree_search import FoundTree
from softsurv.exact.pruning import pruned
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

LEVELS, HORIZON = 4, 2
"""Levels below the proven tree, and depth of the trees whose first splits they are. Over nine large sets of SurvSet
concordance is .680 and the Brier score .119; .673 and .120 with the proven tree alone (`bench_survset.py --collection
large`, `optimal` beside `optimal:max_depth=3,tune=cv`; two cores of an AMD EPYC, 2026-11-25)."""

PRICES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Costs per leaf that are compared, in units of the deviance where a subject weighs one: 1 is what Akaike's criterion
takes for a parameter."""

ERRORS = 2.0
"""A cost is compared with others where its trees are better than the proven ones by so many standard errors of the
paired difference."""

BEST_ERRORS = 1.0
"""Of those costs the highest is taken whose mean loss is within so many standard errors of the least, the error being
that of the least loss itself (the one standard error rule of Breiman et al. 1984, section 3.4.3). Over nine large sets
of SurvSet trees have 11.3 leaves, a concordance of .6800 and a Brier score of .1189; with two errors of the paired
difference in its place 16.6, .6804 and .1189, at the cost of least loss 21.8, .6806 and .1189."""


DEARER = 1.1
"""By this factor the cost rises until a tree has no more leaves than the limit."""


def whole_tree(search: RelativeRiskSearch, found: FoundTree, stop: StopSignal) -> CodeTree | None:
    """A proven tree with all levels below it; None where time ends before."""
    assert found.code_tree is not None
    return search.search.continued(found.code_tree, LEVELS, HORIZON, stop)


def cut_back(search: RelativeRiskSearch, found: FoundTree, whole: CodeTree, price: float) -> tuple[CodeTree, float]:
    """The same where each leaf costs so much for a subject's weight, and that cost; the splits of the proven tree stay.

    The cost is higher where that is needed to keep within the limit on the leaves.
    """
    costs, most = search.search.costs(whole.sums), most_leaves(search.p)
    while True:
        each = price * search.rows.one_subject + search.complexity
        tree = pruned(whole, costs, each, found.code_tree)
        if tree.n_leaves <= most:
            return tree, price
        price *= DEARER


def continued(search: RelativeRiskSearch, found: FoundTree, price: float, stop: StopSignal) -> FoundTree:
    """A tree continued at a cost per leaf, if it is proven. The lower bound is that of any tree with the same cuts.

    Where time ends before, the proven tree stays, and its report says what ended the fit.
    """
    if found.report.status is not Status.OPTIMAL:
        return found
    whole = whole_tree(search, found, stop)
    if whole is None:
        return replace(found, report=_report(search, found, found.report.objective, stop.reason, price))
    code_tree, price = cut_back(search, found, whole, price)
    if code_tree.n_leaves == found.tree.n_leaves:
        return found
    report = _report(search, found, search.search.objective(code_tree), Status.CONTINUED, price)
    return replace(found, tree=search.tree_of(code_tree), report=report, code_tree=code_tree)


def _report(search: RelativeRiskSearch, found: FoundTree, objective: float, status: Status, price: float) -> FitReport:
    """The report of a proven tree that goes on, or was to go on, below its leaves."""
    proven = found.report
    parts = {
        "proven_depth": search.limits[0],
        "proven_leaves": found.tree.n_leaves,
        "proven_objective": proven.objective,
        "cost_per_leaf_below": price,
    }
    return replace(
        proven,
        status=status,
        objective=objective,
        lower_bound=min(search.search.floor, objective),
        trace=(*proven.trace, objective),
        details={**proven.details, **parts},
    )


def price_losses(
    held_out: HeldOutRows,
    search: RelativeRiskSearch,
    found: FoundTree,
    strengths: Sequence[float],
    score: str,
    stop: StopSignal,
) -> tuple[list[HardTree], list[list[float]]] | None:
    """The tree continued at each of `PRICES`, and its held-out losses by strength (P, S); None where time ends."""
    whole = whole_tree(search, found, stop)
    trees, losses = list[HardTree](), list[list[float]]()
    for price in PRICES:
        if whole is None or stop.exhausted:
            return None
        tree, sums = search.with_sums(cut_back(search, found, whole, price)[0])
        trees.append(tree)
        losses.append(held_out.losses(tree, strengths, score, sums))
    return trees, losses


def continued_size(size: Size, price: float, strength: float, most: int) -> Size:
    """The setting of a continued tree of at most so many leaves."""
    depth = size.depth + LEVELS
    return Size(depth, min(size.leaves << LEVELS, most), size.complexity + price, strength)


def best_price(losses: FloatArray, usual: FloatArray) -> tuple[int, int] | None:
    """Places of the cost per leaf and of the strength of shrinkage to continue with, or None.

    Parameters
    ----------
    losses : (P, S, F)
        Held-out losses of continued trees by cost, strength and fold.
    usual : (F,)
        Those of the proven trees.
    """
    mean = losses.mean(axis=2)
    best = losses[np.unravel_index(np.argmin(mean), mean.shape)]
    good = (_ahead(losses, usual) < -ERRORS) & (mean <= best.mean() + BEST_ERRORS * standard_error(best))
    if not good.any():
        return None
    price = int(np.flatnonzero(good.any(axis=1))[-1])
    return price, int(np.argmin(np.where(good[price], mean[price], np.inf)))


def _ahead(losses: FloatArray, other: FloatArray) -> FloatArray:
    """Mean difference of losses (..., F) to others (F,), in standard errors (...); 0 where they are the same."""
    difference = losses - other
    return np.asarray(difference.mean(axis=-1) / np.maximum(standard_error(difference), np.finfo(float).tiny))
