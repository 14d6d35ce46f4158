"""Penalties of each cause's leaves, chosen by inner folds.

Given the rules, causes are fitted one by one, so each may have its own penalties: the leaves of a rare cause should be
shrunk more than those of a frequent one. The rules are those of the chosen trial in each fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from softsurv.arrays import FloatArray
from softsurv.soft.selection import distance_to_usual
from softsurv.sparse.causes import SEPARATOR, take
from softsurv.sparse.folds import Grid
from softsurv.sparse.leaf_fit import ROUGH, LeafPenalties, fit_leaves
from softsurv.sparse.prefer import Trial
from softsurv.sparse.train import held_out_losses, leaves_of, penalties_of
from softsurv.sparse.trials import FamilyTrials
from softsurv.trees.linear_rule import Rules

ERRORS = 2.0
"""Standard errors within which a setting counts as equal to the best, as in the choice of a tree's shrinkage
(`softsurv.sparse.prefer`): the best of so many settings is best partly by chance."""

ALIKE = 1e4, None
"""Shrinkage so strong that a cause has the same hazard in all leaves: of level and shape, with shared slopes."""


@dataclass(frozen=True)
class LeafSetting:
    """Ridge of the common slopes; shrinkage of the leaves' own level and shape, and of their own slopes."""

    ridge: float
    shrinkage: float
    slope_shrinkage: float | None

    def penalties(self, n: int) -> LeafPenalties:
        """The penalties of one tree on n rows."""
        return penalties_of(np.array([float(n)]), self.ridge, self.shrinkage, self.slope_shrinkage)


Losses = dict[LeafSetting, FloatArray]
"""Settings with the held-out loss of each subject, (S,)."""


def settle(chosen: Trial, trials: FamilyTrials | None, grid: Grid) -> tuple[LeafSetting, ...]:
    """The setting of each cause: that of the trial where there is one kind of event.

    Parameters
    ----------
    chosen : Trial
    trials : FamilyTrials, optional
        Where there are causes: the folds and problems of the trial.
    grid : Grid

    Notes
    -----
    The settings are those that the grid has for trees, or for one leaf. Of those within two standard errors of the
    cause's best the one with the ridge nearest to the usual one is taken; of several the one whose leaves share their
    slopes, then the one with the strongest shrinkage. A cause may also have the same hazard in all leaves, except for
    the cause that gains most by the rules.
    """
    candidate = chosen.candidate
    own = LeafSetting(candidate.ridge, candidate.shrinkage, candidate.slope_shrinkage)
    if trials is None or len(trials.problems) == 1 or trials.n_folds == 1:
        return (own,) * (1 if trials is None else len(trials.problems))
    one_leaf = grid.single_ridges, ((own.shrinkage, own.slope_shrinkage),)
    tried = _tried(trials, chosen.fold_rules, *((grid.ridges, grid.shrinkage) if chosen.rules else one_leaf))
    if not chosen.rules or grid.shrinkage != Grid.shrinkage:  # the user's shrinkage is every cause's
        return tuple(_simplest(of_cause, grid.ridge_scale) for of_cause in tried)
    alike = _tried(trials, chosen.fold_rules, grid.ridges, (ALIKE,))
    gains = [_least(without) - _least(apart) for apart, without in zip(tried, alike, strict=True)]
    return tuple(
        _simplest(apart if gain == max(gains) else apart | without, grid.ridge_scale)
        for apart, without, gain in zip(tried, alike, gains, strict=True)
    )


def _tried(
    trials: FamilyTrials,
    rules: Sequence[Rules],
    ridges: Sequence[float],
    pairs: Sequence[tuple[float, float | None]],
) -> list[Losses]:
    """For each cause the settings of every ridge and pair of shrinkages, with their losses."""
    settings = [LeafSetting(ridge, *pair) for ridge, pair in product(ridges, pairs)]
    by_setting = [losses_under(trials, rules, setting) for setting in settings]
    return [dict(zip(settings, of_cause, strict=True)) for of_cause in zip(*by_setting, strict=True)]


def _least(tried: Losses) -> float:
    return min(float(losses.mean()) for losses in tried.values())


def losses_under(trials: FamilyTrials, rules: Sequence[Rules], setting: LeafSetting) -> FloatArray:
    """Held-out loss of each subject for each cause, (K, S), of leaves under the rules of each fold."""
    fold, folds = trials.fold, np.arange(trials.n_folds)
    problems = take(trials.problems, torch.as_tensor(folds))
    leaf = torch.zeros(len(folds), fold.masks.shape[1], dtype=torch.int64)
    if rules:
        leaf = leaves_of(rules, fold.rows.split)
    n_leaves = len(rules[0]) + 1 if rules else 1
    penalties = penalties_of(fold.n_rows, setting.ridge, setting.shrinkage, setting.slope_shrinkage)
    found = []
    for problem in problems:
        model = fit_leaves(problem, leaf, n_leaves, penalties, None, ROUGH, trials.budget).point[0]
        found.append(held_out_losses((problem,), (model,), leaf, fold.held, most=fold.most).sum(0))
    return fold.by_subject(torch.stack(found).double().cpu().numpy())


def _simplest(tried: Losses, scale: float) -> LeafSetting:
    """The simplest setting within `ERRORS` standard errors of the best."""
    best = min(tried.values(), key=np.mean)
    good = {}
    for setting, losses in tried.items():
        gap = losses - best
        if gap.mean() <= ERRORS * gap.std(ddof=1) / len(gap) ** 0.5:
            good[setting] = float(losses.mean())

    def simplicity(one: LeafSetting) -> tuple[float, bool, float, float]:
        return distance_to_usual(one.ridge, scale), one.slope_shrinkage is not None, -one.shrinkage, good[one]

    return min(good, key=simplicity)


def told(families: str, settings: Sequence[LeafSetting]) -> list[dict[str, Any]]:
    """The settings as plain rows, with the family of each cause."""
    return [{"family": name} | asdict(one) for name, one in zip(families.split(SEPARATOR), settings, strict=True)]
