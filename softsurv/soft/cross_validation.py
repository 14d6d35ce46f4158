"""Cross-validation of one setting with all folds trained as one stack: groups are folds, trees are starts.

Every fold has its own preprocessing, time_scale and censoring curve, fitted on its training rows. Folds that encode to
fewer columns, or have fewer rows, are padded with columns of zeros and rows of weight zero, which change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import pad

from softsurv.data.canonical import column_order, row_order
from softsurv.data.partition import Index
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.metrics.evaluate import evaluate_with_censoring, outcome, training_censoring
from softsurv.metrics.fairness import curve_gap
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard
from softsurv.nonparametric import StepFunction
from softsurv.soft.capacity import stack_size
from softsurv.soft.fairness import fairness_of
from softsurv.soft.fit import build_tree
from softsurv.soft.fit_stack import fit_anchors, fit_stack, make_stack
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import join_problems, make_problem, time_floor
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import start_routing
from softsurv.trees.soft_tree import SoftTree

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one fold, encoded by the training rows, and their censoring curve."""

    train: SurvivalData
    test: SurvivalData
    censoring: StepFunction


def make_folds(data: SurvivalData, n_folds: int = 5, seed: int = 0, preprocess: bool = True) -> list[Fold]:
    """Seeded, event-stratified folds, each encoded by a preprocessor fitted on its own training rows."""
    return [prepare_fold(data, rows, preprocess) for rows in folds_of_content(data, n_folds, seed)]


def folds_of_content(data: SurvivalData, n_folds: int = 5, seed: int = 0) -> list[tuple[Index, Index]]:
    """Training and test rows of each fold, which depend on the rows' content and not on their order; subjects whole."""
    order = row_order(data, column_order(data.X, data))
    return [(order[train], order[test]) for train, test in data.take(order).folds(n_folds, seed)]


def prepare_fold(data: SurvivalData, rows: tuple[Index, Index], preprocess: bool = True) -> Fold:
    """One fold from its training and test rows."""
    train_, test = data.take(rows[0]), data.take(rows[1])
    censoring = training_censoring(train_)
    if preprocess:
        encoder = Preprocessor().fit_checked(train_.X, named=True, order=column_order(train_.X, train_))
        train_, test = (part.with_features(encoder.transform(part.X)) for part in (train_, test))
    return Fold(train_, test, censoring)


def cross_validate_soft(
    data: SurvivalData | Sequence[Fold],
    recipe: Recipe,
    n_folds: int = 5,
    *,
    seed: int = 0,
    machine: Machine | None = None,
) -> list[dict[str, Any]]:
    """Held-out measures of one recipe in every fold.

    Parameters
    ----------
    data : SurvivalData or sequence of Fold
        Raw data, or folds that :func:`make_folds` prepared: sweeps prepare them once.
    recipe : Recipe
        Without ``l1``, and its starts given by name.
    n_folds, seed : int
        Number of folds and their seed, where ``data`` are raw.
    machine : Machine, optional
        The CPU by default.

    Returns
    -------
    list of dict
        Of each fold what :func:`softsurv.metrics.evaluate` returns, and ``fairness`` (mean gap between the
        groups' survival curves) where the data have two groups.
    """
    folds = make_folds(data, n_folds, seed) if isinstance(data, SurvivalData) else list(data)
    trees = fit_folds(folds, recipe, machine)
    return [measure_fold(fold, tree) for fold, tree in zip(folds, trees, strict=True)]


def fit_folds(folds: Sequence[Fold], recipe: Recipe, machine: Machine | None = None) -> list[SoftTree]:
    """The tree of each fold: of its starts the one with the lowest training objective."""
    machine = Machine(torch.device("cpu")) if machine is None else machine
    trees: list[SoftTree] = []
    for part in _fold_slabs(folds, recipe, machine):
        trees += _fit_together(folds[part], recipe, machine)
    return trees


def measure_fold(fold: Fold, tree: SoftTree) -> dict[str, Any]:
    """Measures of a fold's tree on its test rows."""
    x = fold.test.x.to(tree.leaves)

    def log_hazard(times: FloatArray) -> FloatArray:
        grid = torch.as_tensor(np.where(times > 0, times, 1.0)).to(tree.leaves)
        with torch.no_grad():
            values = tree.log_cumulative_hazard(x, grid)[0].double().cpu().numpy()
        values[:, times <= 0] = -np.inf
        return values

    known = outcome(fold.test, time_floor(fold.train.time))
    result = evaluate_with_censoring(fold.censoring, **known, log_cumulative_hazard=log_hazard)
    group = fold.test.group
    if group is not None and group.unique().numel() == 2:
        first, last = result["range"]
        times = np.linspace(first, last, result["n_times"])
        survival = survival_from_log_cumulative_hazard(log_hazard(times))
        result["fairness"] = curve_gap(survival, times, (group == group.max()).numpy()).mean
    return result


def _fold_slabs(folds: Sequence[Fold], recipe: Recipe, machine: Machine) -> Iterator[slice]:
    """Consecutive folds that train together, as many as the device takes at once.

    The grid of the fairness penalty is the fold's own, so with that penalty each fold is a stack of its own.
    """
    rows, columns = max(f.train.n for f in folds), max(f.train.X.shape[1] for f in folds) + 1
    leaves = 2**recipe.candidate.depth
    n_trees = stack_size(rows, leaves, columns, machine.device, machine.dtype, shared_design=False)
    together = 1 if recipe.fairness else max(1, min(len(folds), n_trees // len(recipe.starts)))
    size = math.ceil(len(folds) / math.ceil(len(folds) / together))  # parts of equal size
    return (slice(first, first + size) for first in range(0, len(folds), size))


def _fit_together(folds: Sequence[Fold], recipe: Recipe, machine: Machine) -> list[SoftTree]:
    """Train the starts of several folds as one stack; of each fold the best tree, without the padding."""
    family, depth, starts = recipe.family, recipe.candidate.depth, recipe.used_starts
    columns = [fold.train.X.shape[1] + 1 for fold in folds]
    parts = [make_problem(fold.train, family, dtype=machine.dtype, device=machine.device) for fold in folds]
    problem = join_problems(parts)
    n = torch.tensor([float(fold.train.n) for fold in folds], dtype=torch.float64).to(problem.weight)
    fairness = fairness_of(folds[0].train, problem.repeat(len(starts)), recipe.fairness)
    anchors = fit_anchors(problem, recipe, n, budget=machine.budget, fairness=fairness).point[0]
    seeds = [recipe.seed + k for k in range(len(starts))]
    routing = torch.stack(
        [
            pad(start_routing(starts, fold.train, depth, seeds), (0, max(columns) - own))
            for fold, own in zip(folds, columns, strict=True)
        ]
    ).to(problem.design)
    stack = make_stack(problem, recipe, routing, anchors, n, fairness=fairness, columns=columns)
    trained = fit_stack(stack, recipe.training, machine)
    best = trained.objective.view(len(folds), -1).argmin(1)
    trees = []
    for k, (fold, own) in enumerate(zip(folds, columns, strict=True)):
        row = k * len(starts) + best[k]
        routing_, leaves = trained.routing[row, :, :own], trained.leaves[row]
        leaves = torch.cat([leaves[:, :own], leaves[:, max(columns) :]], 1)
        trees.append(build_tree(family, depth, routing_, leaves, problem.time_scale[k], fold.train.x))
    return trees
