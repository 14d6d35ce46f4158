"""Which curve the leaves of a relative-risk tree get: chosen for rows held out.

A relative risk times a common baseline needs few rows, and cannot say that the curves of two leaves cross or meet. A
Kaplan-Meier curve in every leaf, pulled to those above it, can. It is taken where it is clearly better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from softsurv.estimators.optimal.held_out import HeldOutRows
from softsurv.estimators.optimal.leaves import held_out_losses, kaplan_meier_curves, leaf_curves
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.shrinkage import with_risk
from softsurv.estimators.optimal.sizes import standard_error
from softsurv.estimators.optimal.tree_search import TreeSearch
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

CLEAR_ERRORS = 2.0
"""A curve of its own in every leaf must be better by so many standard errors of the paired difference. Over nine large
sets of SurvSet the Brier score is .1189, and .1198 where relative risks stay, both with a concordance of .680
(`bench_survset.py --collection large`, `optimal` beside `optimal:leaf=adaptive`; an AMD EPYC, 2026-11-25)."""


CURVE_COPIES = 2
"""Hazards, and the curves made of them."""

MOST_TIMES = 2000
"""Distinct times up to which curves are compared as they are. More are rounded up to a grid of so many, half of them
quantiles and half equally spaced: no step of the grid holds more than a thousandth of rows or of time."""


class FoldTree(NamedTuple):
    """The tree of a fold, the search over its training rows, and the rows held out."""

    search: TreeSearch
    tree: HardTree
    held_out: Rows

    @classmethod
    def of(cls, tree: HardTree, search: TreeSearch, held_out: HeldOutRows) -> FoldTree:
        """With the rows of a fold's held-out part."""
        return cls(search, tree, held_out.rows)


def choose_curve(
    folds: Iterable[FoldTree], shrinkage: float, strengths: Sequence[float], score: str, stop: StopSignal
) -> tuple[str, float] | None:
    """The kind of curve, "adaptive" or "km", and the strength of shrinkage that goes with it.

    Parameters
    ----------
    folds : iterable of FoldTree
    shrinkage : float
        Of relative risks.
    strengths : sequence of float
        Compared for Kaplan-Meier curves.
    score : {"ibs", "concordance"}
    stop : StopSignal
        Where it ends the comparison, there is no choice.
    """
    losses = list[list[float]]()
    for fold in folds:
        tried = None if stop.exhausted else _losses_of(fold, shrinkage, strengths, score, stop)
        if tried is None:
            return None
        losses.append(tried)
        del fold  # the next one is made in its memory
    risks, *own = np.array(losses).T  # (F,) each
    best = int(np.argmin([one.mean() for one in own]))
    gained = risks - own[best]
    clear = gained.mean() > CLEAR_ERRORS * standard_error(gained)
    return ("km", float(strengths[best])) if clear else ("adaptive", shrinkage)


def _losses_of(
    fold: FoldTree, shrinkage: float, strengths: Sequence[float], score: str, stop: StopSignal
) -> list[float] | None:
    """Held-out losses of relative risks and of Kaplan-Meier curves with each strength, (1 + S,)."""
    search, tree = fold.search, fold.tree
    rows, held_out = rounded(search.rows, fold.held_out)
    shrunk = with_risk(search.rows, tree, search.leaf_sums(tree), shrinkage)
    curves = [leaf_curves(rows, shrunk, "adaptive", shrinkage)]
    if stop.exhausted:
        return None
    curves += kaplan_meier_curves(rows, tree, strengths)
    return None if stop.exhausted else held_out_losses(curves, held_out.leaf_of(tree), held_out, score)


def rounded(*parts: Rows) -> list[Rows]:
    """Rows whose times are rounded up to one grid of `MOST_TIMES`, where they have more distinct times together."""
    times = np.unique(np.concatenate([rows.time for rows in parts]))
    if times.size <= MOST_TIMES:
        return list(parts)
    half = MOST_TIMES // 2
    every = np.sort(np.concatenate([rows.time for rows in parts]))
    quantiles = every[np.linspace(0, every.size - 1, half).round().astype(int)]  # first and last time among them
    grid = np.union1d(quantiles, np.linspace(times[0], times[-1], half + 1)[1:-1])
    return [replace(rows, time=grid[np.searchsorted(grid, rows.time)]) for rows in parts]


def bytes_of_comparison(n: int, leaves: int, strengths: int) -> float:
    """Bytes that the curves of a tree of n rows and so many leaves take while compared, with the rows of its nodes."""
    tables = CURVE_COPIES * leaves * (1 + strengths) * min(n, MOST_TIMES)
    return float(tables + leaves.bit_length() * n) * np.dtype(float).itemsize
