"""The grid that the choice of a tree of rules tries, and the folds on which it is tried."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.soft.selection import USUAL_RIDGE, scaled_ridge
from softsurv.sparse.prefer import CONSTANT, EVER_WEAKER
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import StackRows

FARTHEST = 12.0
"""Most nats that the loss of a held-out row counts, for each of several causes. A row whose features are far from all
others can lose a hundred, and would alone decide on families, trees and penalties of every cause."""

WEIGHT_BITS = 40
"""Bits of a weight's mantissa that count: its last ones depend on the unit."""


@dataclass(frozen=True)
class Grid:
    """Penalties, numbers of leaves and terms that are tried, and limits of the trees."""

    single_ridges: tuple[float, ...] = (0.1, USUAL_RIDGE, 1.0, 10.0, CONSTANT)
    ridges: tuple[float, ...] = (USUAL_RIDGE, 30.0)
    leaves: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    more_leaves: tuple[int, ...] = (12, 16)
    """Sizes that are tried one after the other as long as the larger tree is clearly better."""
    terms: tuple[int, ...] = (1, 3)
    shrinkage: tuple[tuple[float, float | None], ...] = (
        (10.0, None),
        (40.0, None),
        (160.0, None),
        (40.0, 10.0),
        *EVER_WEAKER,
    )
    """Pairs of shrinkage and slope shrinkage."""
    depth: int | None = None
    n_folds: int = 5
    least_events: float = 10.0
    split_penalty: float = 10.0
    ridge_given: bool = False
    """Whether the ridge is the user's: it is then taken as it is."""
    ridge_scale: float = 1.0
    """What the ridges have been multiplied with (`row_space.ridge_scale`)."""

    def scaled(self, scale: float) -> Grid:
        """The grid with stronger ridges, unless the ridge is given."""
        if scale == 1.0 or self.ridge_given:
            return self
        single, trees = (
            tuple(scaled_ridge(ridge, scale) for ridge in own) for own in (self.single_ridges, self.ridges)
        )
        return replace(self, single_ridges=single, ridges=trees, ridge_scale=scale)

    def n_candidates(self, n_families: int) -> int:
        """How many candidates are tried: one leaf with each family, and the trees of one family in the usual sizes."""
        sizes = sum(size > 1 for size in self.leaves)
        trees = sizes * len(self.ridges) * len(self.terms) * len(self.shrinkage)
        return n_families * len(self.single_ridges) + trees


@dataclass(frozen=True)
class FoldRows:
    """The folds; the last one trains on all rows."""

    masks: FloatArray  # (F, N) 1 where a row trains
    held: Tensor  # (F, N) weight of held-out rows; the sum over all folds is the number of subjects
    rows: StackRows
    subject: IntArray | None = None  # (N,) where subjects have several rows
    most: float = math.inf  # most nats that a held-out row counts

    @property
    def n_rows(self) -> FloatArray:
        """Training rows of each fold, (F,)."""
        return self.masks.sum(1)

    def by_subject(self, losses: FloatArray) -> FloatArray:
        """Losses of rows (..., N) added up for each subject, (..., S)."""
        if self.subject is None:
            return losses
        flat = losses.reshape(-1, losses.shape[-1])
        return np.array([np.bincount(self.subject, own) for own in flat]).reshape(*losses.shape[:-1], -1)


def in_their_mean(weight: FloatArray) -> FloatArray:
    """Weights (N,) in units of their mean, without the last digits: the unit that they are given in changes no rule."""
    mantissa, exponent = np.frexp(weight / weight.mean())
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, WEIGHT_BITS)), exponent - WEIGHT_BITS))


def make_folds(
    data: SurvivalData, split: SplitData, grid: Grid, seed: int, counts: FloatArray | None = None
) -> FoldRows:
    """Stratified folds for the choice, and all rows for the tree; all rows alone where ``grid.n_folds`` is 1.

    ``counts`` (K,) are the factors of the causes. Only events of causes with a factor above 0 count for the least
    number of events in a leaf.
    """
    events, subject = data.failed, None
    if counts is not None and data.cause is not None:
        events = np.append(False, counts > 0)[data.cause.cpu().numpy()]
    weight = np.ones(data.n) if data.weight is None else data.weight.double().cpu().numpy()
    weight = in_their_mean(weight)
    masks = [np.ones(data.n)]
    if data.subject is not None:
        subject = np.unique(data.subject.cpu().numpy(), return_inverse=True)[1]
    if grid.n_folds > 1:
        for train, _ in data.folds(max(2, min(grid.n_folds, data.n_failed_subjects)), seed):
            mask = np.zeros(data.n)
            mask[train] = 1.0
            masks.insert(len(masks) - 1, mask)
    table = np.array(masks)
    folds = tuple(np.flatnonzero(mask) for mask in table)
    rows = StackRows(split, weight, events.astype(float), folds, grid.least_events, grid.split_penalty, counts)
    held = (1 - table) * weight
    total = held.sum()
    mean_one = torch.as_tensor(held * (data.n_subjects / total) if total > 0 else held)
    return FoldRows(table, mean_one, rows, subject, FARTHEST if data.n_causes > 1 else math.inf)
