"""Sizes of the splits and covariances of the leaves, computed from the training rows after a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from softsurv.arrays import FloatArray
from softsurv.data.blocks import over_rows
from softsurv.data.survival_data import SurvivalData
from softsurv.estimators.soft.fitted import leaf_of
from softsurv.numerics import Design
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Recipe
from softsurv.sparse.covariance import dense_covariance
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.split_effects import split_effects

QUARTILES = (0.25, 0.5, 0.75)
"""Quantiles of the events' times at which the predictions on two sides of a split are compared."""


def sizes_of_splits(trees: Sequence[SoftTree], data: SurvivalData) -> FloatArray:
    """How much each split changes what is predicted for the training rows, (B,), summed over causes."""
    known = data.time.double().cpu().numpy()
    times = known[data.failed & (known > 0)]
    times = times if times.size else known[known > 0]
    weight = None if data.weight is None else data.weight.double().cpu().numpy()
    grid = np.quantile(times, QUARTILES)
    return np.sum([split_effects(tree, data.design, grid, weight) for tree in trees], 0)


def centre_and_spread(tree: SoftTree, data: SurvivalData) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and standard deviation of each encoded feature, both (P,), computed where the table is."""
    share = None if data.weight is None else data.weight.double() / data.weight.double().sum()
    if tree.leaves.device.type == "cpu" or tree.leaves.dtype != torch.float64:
        columns, shares = data.x.numpy().T, None if share is None else share.cpu().numpy()
        return over_rows(partial(_means, share=shares), columns), over_rows(partial(_deviations, share=shares), columns)
    features = data.design.to(tree.leaves).table[:, 1:]
    if share is None:
        return features.mean(0).cpu().numpy(), features.std(0, correction=0).cpu().numpy()
    share = share.to(features)
    mean = share @ features
    return mean.cpu().numpy(), (share @ (features - mean) ** 2).sqrt().cpu().numpy()


def _means(columns: FloatArray, share: FloatArray | None) -> FloatArray:
    return np.array([_mean(column, share) for column in columns])  # one by one: the same however the columns lie


def _deviations(columns: FloatArray, share: FloatArray | None) -> FloatArray:
    if share is None:
        return np.array([column.std() for column in columns])
    return np.sqrt([_mean((column - _mean(column, share)) ** 2, share) for column in columns])


def _mean(column: FloatArray, share: FloatArray | None) -> float:
    return float(column.mean() if share is None else (share * column).sum())


def covariance_of_leaves(
    tree: SoftTree, data: SurvivalData, recipe: Recipe, design: Design | None = None
) -> FloatArray | None:
    """Covariance of the leaves of a dense tree, each row being in its most probable leaf; (L, Q + K, Q + K).

    ``design`` is that of the data, where it is there already.
    """
    design = data.design if design is None else design
    problem, used = make_problem(data, recipe.family, device=tree.leaves.device, design=design), tree.used_leaves
    leaves = tree.leaves[0].detach().double()[torch.as_tensor(used)]
    shrinkage = recipe.candidate.shrinkage if tree.depth else 0.0
    strength = torch.full((leaves.shape[1],), recipe.l2_all + shrinkage, dtype=torch.float64)
    if shrinkage == 0:  # a shrunken tree has no ridge of its own: its anchor had it
        strength[1 : tree.n_features + 1] += recipe.candidate.ridge
    total = float(data.n if data.weight is None else data.weight.sum())
    leaf = torch.as_tensor(leaf_of(tree, design))
    return dense_covariance(problem, leaf, leaves, strength / data.n, total, data.subject_codes)
