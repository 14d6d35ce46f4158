"""Which curve the leaves of a relative-risk tree get: chosen for rows held out.

A relative risk times a common baseline needs few rows, and cannot say that the curves of two leaves cross or meet. A
Kaplan-Meier curve in every leaf, pulled to those above it, can. It is taken where it is clearly better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.estimators.optimal.leaves import held_out_loss, leaf_curves
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import TreeSearch
from softsurv.estimators.optimal.shrinkage import with_risk
from softsurv.estimators.optimal.sizes import standard_error
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

CLEAR_ERRORS = 2.0
"""A curve of its own in every leaf must be better by so many standard errors of the paired difference. Over nine large
sets of SurvSet the Brier score is .1189, and .1198 where relative risks stay, both with a concordance of .680
(`bench_survset.py --collection large`, `optimal` beside `optimal:leaf=adaptive`; an AMD EPYC, 2026-11-25)."""


class FoldTree(NamedTuple):
    """The tree of a fold, the search over its training rows, and the rows held out."""

    search: TreeSearch
    tree: HardTree
    held_out: Rows


def choose_curve(
    folds: Iterable[FoldTree], shrinkage: float, strengths: Sequence[float], score: str, stop: StopSignal
) -> tuple[str, float]:
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
        Where it ends the comparison, relative risks stay.
    """
    risks, own = list[float](), list[list[float]]()
    for search, tree, held_out in folds:
        if stop.exhausted:
            return "adaptive", shrinkage
        leaf, shrunk = held_out.leaf_of(tree), with_risk(search.rows, tree, search.leaf_sums(tree), shrinkage)
        risks.append(held_out_loss(leaf_curves(search.rows, shrunk, "adaptive", shrinkage), leaf, held_out, score))
        curves = [leaf_curves(search.rows, shrunk, "km", strength) for strength in strengths]
        own.append([held_out_loss(one, leaf, held_out, score) for one in curves])
    losses: FloatArray = np.array(own)  # (F, S)
    best = int(np.argmin(losses.mean(axis=0)))
    gained = np.array(risks) - losses[:, best]
    clear = gained.mean() > CLEAR_ERRORS * standard_error(gained)
    return ("km", float(strengths[best])) if clear else ("adaptive", shrinkage)
