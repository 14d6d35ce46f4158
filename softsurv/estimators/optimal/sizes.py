"""Sizes of an optimal tree that one path per fold compares: limits on the leaves, and costs per leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.estimators.shared.exact_tree import SizedTree
from softsurv.trees.hard_tree import HardTree

DIGITS = 3
"""Significant digits of a cost per leaf that is tried."""


class Size(NamedTuple):
    """A setting: limits on depth and leaves, cost per leaf, and events that a leaf takes from above."""

    depth: int
    leaves: int
    complexity: float
    shrinkage: float


@dataclass(frozen=True)
class FoldPath:
    """Best trees of one fold by number of leaves: K trees, the smallest first, and S strengths of shrinkage.

    Attributes
    ----------
    n_leaves : ndarray of int (K,)
    objective : ndarray (K,)
        On the training part.
    loss : ndarray (K, S)
        Of the other rows.
    trees : tuple of HardTree
    """

    n_leaves: IntArray
    objective: FloatArray
    loss: FloatArray
    trees: tuple[HardTree, ...] = ()

    @classmethod
    def of(cls, sizes: Sequence[SizedTree], losses: Sequence[Sequence[float]]) -> FoldPath:
        """The path of trees with their losses."""
        n_leaves = np.array([size.tree.n_leaves for size in sizes])
        objective, trees = np.array([size.objective for size in sizes]), tuple(size.tree for size in sizes)
        return cls(n_leaves, objective, np.array(losses), trees)

    def tree_at(self, size: Size, complexity: float) -> HardTree:
        """The tree of a setting, of a search at a cost per leaf."""
        extra = size.complexity - complexity
        return self.trees[self.at_price(extra) if extra > 0 else self.at_most(size.leaves)]

    def at_most(self, leaves: int) -> int:
        """Place of the best tree with so many leaves; a path ends where more do not help."""
        return min(leaves, len(self.n_leaves)) - 1

    def at_price(self, complexity: float) -> int:
        """Place of the best tree at a cost per leaf, the smaller of two that are as good."""
        return int(np.argmin(self.objective + complexity * self.n_leaves))

    def turns(self) -> list[float]:
        """Costs per leaf at which the best tree changes, ascending."""
        found, at = list[float](), len(self.n_leaves) - 1
        while len(smaller := np.flatnonzero(self.n_leaves < self.n_leaves[at])):  # one more leaf may change nothing
            prices = (self.objective[smaller] - self.objective[at]) / (self.n_leaves[at] - self.n_leaves[smaller])
            best = int(np.argmin(prices))  # of equal prices the smallest tree
            at = int(smaller[best])
            found.append(float(prices[best]))
        return found


def compared(
    paths: Sequence[FoldPath], depth: int, most: int, complexity: float, strengths: Sequence[float], *, priced: bool
) -> Iterator[tuple[Size, float, FloatArray]]:
    """Every setting of trees of one depth with its mean number of leaves and its losses of all folds (F,).

    A tree of depth d has at least d + 1 leaves, so smaller limits belong to smaller depths. Where ``priced``, costs
    per leaf above ``complexity`` are tried as well, as many as limits on the leaves.
    """
    settings = [(leaves, complexity, [path.at_most(leaves) for path in paths]) for leaves in range(depth + 1, most + 1)]
    if priced:
        known = {tuple(places) for _, _, places in settings}
        for price in prices(paths, len(settings)):
            places = [path.at_price(price) for path in paths]
            if tuple(places) not in known:
                known.add(tuple(places))
                settings.append((most, complexity + price, places))
    for leaves, total, places in settings:
        n_leaves = float(np.mean([path.n_leaves[k] for path, k in zip(paths, places, strict=True)]))
        loss = np.array([path.loss[k] for path, k in zip(paths, places, strict=True)])  # (F, S)
        for s, strength in enumerate(strengths):
            yield Size(depth, leaves, total, strength), n_leaves, loss[:, s]


def prices(paths: Sequence[FoldPath], count: int) -> list[float]:
    """Costs per leaf between those at which the trees of the folds change: evenly spread quantiles, rounded."""
    turns = [turn for path in paths for turn in path.turns() if turn > 0]
    if not turns:
        return []
    quantiles = np.quantile(np.log(turns), (np.arange(count) + 0.5) / count)
    return sorted({float(f"{price:.{DIGITS}g}") for price in np.exp(quantiles).tolist()})


def standard_error(losses: FloatArray) -> FloatArray:
    """Standard error (...) of the mean of losses (..., F) over the folds; 0 of one fold."""
    n_folds = losses.shape[-1]
    return np.asarray(losses.std(axis=-1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(losses.shape[:-1]))
