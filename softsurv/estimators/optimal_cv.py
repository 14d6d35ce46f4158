"""Depth and leaves of an optimal tree by cross-validation: one search per fold, every size from its path."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from softsurv.data.binarize import Binarizer
from softsurv.data.partition import stratified_folds
from softsurv.data.survival_data import SurvivalData
from softsurv.estimators.optimal_rows import Rows
from softsurv.estimators.optimal_search import SEARCHES, TreeSearch
from softsurv.results import Status
from softsurv.stopping import StopSignal

FOLDS = 5
"""As in the papers; fewer where there are fewer events."""


@dataclass(frozen=True)
class Choice:
    """The size that cross-validation chose.

    Attributes
    ----------
    depth, leaves : int
        Limits for the tree of all rows.
    table : list of dict
        Mean held-out loss of every size, best first.
    status : Status
        OPTIMAL, or why some sizes were not tried.
    """

    depth: int
    leaves: int
    table: list[dict[str, Any]]
    status: Status


def choose_size(data: SurvivalData, binarizer: Binarizer, p: Any, leaf: str, seed: int, timer: StopSignal) -> Choice:
    """Try every depth and number of leaves within the limits on event-stratified folds.

    Cuts, levels and leaf values are learned on the training part of each fold. Of equal sizes the one with fewer
    leaves is taken. A tree of depth d has at least d + 1 leaves, so smaller sizes belong to smaller depths.
    """
    event = data.event.numpy()
    folds = stratified_folds(event, min(FOLDS, max(int(event.sum()), 2)), seed)
    parts: list[tuple[TreeSearch, Rows]] = []  # of each fold, made when its turn comes first
    status, losses = Status.OPTIMAL, {}
    for depth in range(p.max_depth + 1):
        most = min(p.max_leaves or 2**depth, 2**depth)
        if most <= depth:
            break
        by_fold = []
        for number, (train, test) in enumerate(folds):
            if timer.status is not None:
                status = timer.status
                break
            if number == len(parts):
                fitted = Binarizer(**binarizer.get_params()).fit(data.X.iloc[train])
                search = SEARCHES[p.objective](Rows.of(data.take(train), fitted), p, leaf)
                parts.append((search, Rows.of(data.take(test), fitted)))
            search, held_out = parts[number]
            sizes, status = search.path(depth, most, timer.left)
            if status != Status.OPTIMAL:
                break
            by_fold.append([search.held_out(size.tree, held_out) for size in sizes])
        if status != Status.OPTIMAL:
            break
        for k in range(depth, most):
            # a path ends early where no split is left: its last tree stands for the larger sizes
            losses[depth, k + 1] = float(np.mean([fold[min(k, len(fold) - 1)] for fold in by_fold]))
    ranked = sorted(losses, key=lambda size: (losses[size], size[1], size[0])) or [(0, 1)]
    table = [
        {"max_depth": d, "max_leaves": k, "loss": losses.get((d, k), math.nan), "chosen": (d, k) == ranked[0]}
        for d, k in ranked
    ]
    return Choice(*ranked[0], table, status)
