"""Cross-validation of one setting with all folds trained as one stack: groups are folds, trees are starts.

Every fold has its own preprocessing, clock and censoring curve, fitted on its training rows. Folds that encode to
fewer columns, or have fewer rows, are padded with columns of zeros and rows of weight zero, which change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from softsurv.budget import Budget
from softsurv.data.partition import Index, stratified_folds
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.hazards.base import LeafFamily
from softsurv.metrics.evaluate import evaluate_with_censoring, outcome, training_censoring
from softsurv.metrics.fairness import curve_gap
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard
from softsurv.nonparametric import StepFunction
from softsurv.soft.blocks import leaf_step
from softsurv.soft.capacity import stack_size
from softsurv.soft.decomposition import Trained
from softsurv.soft.fairness import fairness_of
from softsurv.soft.initialise import initial_leaves, presumed_outcomes
from softsurv.soft.objective import Objective, Penalties
from softsurv.soft.optimise import Settings
from softsurv.soft.problem import Problem, join_problems, make_problem, time_floor
from softsurv.soft.selection import Candidate
from softsurv.soft.train import TrainSettings, fit_single_leaf, start_routing, train
from softsurv.trees.soft_tree import SoftTree

FloatArray = NDArray[np.float64]

FIRST_LEAVES = Settings(max_iterations=10)
"""How far the leaves are fitted to a start's routing before training."""


@dataclass(frozen=True)
class Setting:
    """One setting of the soft tree, nothing left to choose; penalties in units of 1 / N."""

    candidate: Candidate
    starts: tuple[str, ...] = ("logrank",)
    training: TrainSettings = field(default_factory=TrainSettings)
    family_settings: dict[str, int] = field(default_factory=dict)
    l2_all: float = 0.0
    fairness: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one fold, encoded by the training rows, and their censoring curve."""

    train: SurvivalData
    test: SurvivalData
    censoring: StepFunction


def make_folds(data: SurvivalData, n_folds: int = 5, seed: int = 0, preprocess: bool = True) -> list[Fold]:
    """Seeded, event-stratified folds, each encoded by a preprocessor fitted on its own training rows."""
    return [prepare_fold(data, rows, preprocess) for rows in stratified_folds(data.failed, n_folds, seed)]


def prepare_fold(data: SurvivalData, rows: tuple[Index, Index], preprocess: bool = True) -> Fold:
    """One fold from its training and test rows."""
    train_, test = data.take(rows[0]), data.take(rows[1])
    censoring = training_censoring(train_)
    if preprocess:
        encoder = Preprocessor().fit(train_.X)
        train_, test = (part.with_features(encoder.transform(part.X)) for part in (train_, test))
    return Fold(train_, test, censoring)


def cross_validate_soft(
    data: SurvivalData | Sequence[Fold],
    setting: Setting,
    n_folds: int = 5,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float64,
    budget: Budget | None = None,
) -> list[dict[str, Any]]:
    """Held-out measures of one setting in every fold.

    Parameters
    ----------
    data : SurvivalData or sequence of Fold
        Raw data, or folds that :func:`make_folds` prepared: sweeps prepare them once.
    setting : Setting
    n_folds, seed : int
        Number of folds and their seed, where ``data`` are raw.
    device, dtype
        Where and in what precision to train.
    budget : Budget, optional

    Returns
    -------
    list of dict
        Of each fold what :func:`softsurv.metrics.evaluate` returns, and ``fairness`` (mean gap between the
        groups' survival curves) where the data have two groups.
    """
    folds = make_folds(data, n_folds, seed) if isinstance(data, SurvivalData) else list(data)
    trees = fit_folds(folds, setting, device=torch.device(device), dtype=dtype, budget=budget)
    return [measure_fold(fold, tree) for fold, tree in zip(folds, trees, strict=True)]


def fit_folds(
    folds: Sequence[Fold],
    setting: Setting,
    *,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float64,
    budget: Budget | None = None,
) -> list[SoftTree]:
    """The tree of each fold: of its starts the one with the lowest training objective."""
    device = torch.device("cpu") if device is None else device
    family = get_family(setting.candidate.family, **setting.family_settings)
    trees: list[SoftTree] = []
    for part in _fold_slabs(folds, setting, device, dtype):
        trees += _fit_stack(folds[part], setting, family, device, dtype, budget)
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


def _fold_slabs(folds: Sequence[Fold], setting: Setting, device: torch.device, dtype: torch.dtype) -> Iterator[slice]:
    """Consecutive folds that train together, as many as the device takes at once.

    The grid of the fairness penalty is the fold's own, so with that penalty each fold is a stack of its own.
    """
    rows, columns = max(f.train.n for f in folds), max(f.train.X.shape[1] for f in folds) + 1
    n_trees = stack_size(rows, 2**setting.candidate.depth, columns, device, dtype, shared_design=False)
    together = 1 if setting.fairness else max(1, min(len(folds), n_trees // len(setting.starts)))
    size = math.ceil(len(folds) / math.ceil(len(folds) / together))  # parts of equal size
    return (slice(first, first + size) for first in range(0, len(folds), size))


def _fit_stack(
    folds: Sequence[Fold],
    setting: Setting,
    family: LeafFamily,
    device: torch.device,
    dtype: torch.dtype,
    budget: Budget | None,
) -> list[SoftTree]:
    """Train the starts of several folds as one stack."""
    candidate, n_starts = setting.candidate, len(setting.starts)
    columns = max(fold.train.X.shape[1] for fold in folds) + 1
    problem = join_problems([_fold_problem(fold, family, columns, device, dtype) for fold in folds])
    one = 1 / torch.tensor([float(fold.train.n) for fold in folds]).to(problem.weight)
    anchor = fit_single_leaf(problem, l2=candidate.ridge * one, l2_all=setting.l2_all * one)  # (G, 1, Q + K)
    leaves, routing = anchor, anchor[:, :0, :columns]
    if candidate.depth > 0:
        problem = replace(problem, weight=problem.weight.repeat_interleave(n_starts, 0))
        trained = _train_starts(folds, setting, problem, anchor, one.repeat_interleave(n_starts), budget)
        rows = trained.objective.view(len(folds), n_starts).argmin(1) + n_starts * torch.arange(len(folds)).to(device)
        leaves, routing = trained.leaves[rows], trained.routing[rows]
    return [
        _own_tree(fold, family, candidate.depth, leaves[k], routing[k], problem.clock[k])
        for k, fold in enumerate(folds)
    ]


def _train_starts(
    folds: Sequence[Fold],
    setting: Setting,
    problem: Problem,
    anchor: Tensor,  # (G, 1, Q + K)
    one: Tensor,  # (M,) 1 / N of each tree
    budget: Budget | None,
) -> Trained:
    """Train every start of every fold."""
    candidate, n_starts = setting.candidate, len(setting.starts)
    penalties = Penalties(
        (0.0 if candidate.shrinkage > 0 else candidate.ridge) * one,
        candidate.shrinkage * one,
        candidate.routing_l2 * one,
        anchor.repeat_interleave(n_starts, 0),
        setting.l2_all * one,
    )
    fairness = fairness_of(folds[0].train, problem, setting.fairness)
    objective = Objective(problem, candidate.depth, penalties, fairness)
    columns = problem.design.shape[-1]
    routing = torch.cat([_start_routing(fold, setting, columns) for fold in folds]).to(anchor)
    leaves = torch.cat([_start_leaves(fold, setting, anchor[k], columns) for k, fold in enumerate(folds)])
    leaves = leaf_step(objective, routing, leaves, 0, FIRST_LEAVES)
    return train(objective, routing, leaves, setting.training, budget)


def _fold_problem(fold: Fold, family: LeafFamily, columns: int, device: torch.device, dtype: torch.dtype) -> Problem:
    """The fold's training rows, its design padded with columns of zeros."""
    problem = make_problem(fold.train, family, dtype=dtype, device=device)
    return replace(problem, design=pad(problem.design, (0, columns - problem.design.shape[-1])))


def _start_routing(fold: Fold, setting: Setting, columns: int) -> Tensor:  # (starts, B, columns)
    """Routing weights of the fold's starts, zero in the padding."""
    x, (time, event) = fold.train.x.numpy(), presumed_outcomes(fold.train)
    seeds = [setting.seed + k for k in range(len(setting.starts))]
    table = start_routing(setting.starts, x, time, event, setting.candidate.depth, seeds)
    return pad(table, (0, columns - table.shape[-1]))


def _start_leaves(
    fold: Fold,
    setting: Setting,
    anchor: Tensor,  # (1, Q + K)
    columns: int,
) -> Tensor:  # (starts, L, Q + K)
    """Leaves about the fold's single-leaf fit, drawn as if the padding were not there."""
    seeds = [setting.seed + k for k in range(len(setting.starts))]
    own = _own_columns(fold, columns, anchor.shape[-1])
    drawn = initial_leaves(anchor[:, own].expand(len(seeds), 1, -1), setting.candidate.depth, seeds)
    leaves = anchor.new_zeros(*drawn.shape[:2], anchor.shape[-1])
    leaves[..., own] = drawn
    return leaves


def _own_columns(fold: Fold, columns: int, size: int) -> list[int]:
    """Positions of a fold's own parameters among those of a padded leaf: features, then shapes."""
    return [*range(fold.train.X.shape[1] + 1), *range(columns, size)]


def _own_tree(
    fold: Fold,
    family: LeafFamily,
    depth: int,
    leaves: Tensor,  # (L, Q + K)
    routing: Tensor,  # (B, Q)
    clock: Tensor,  # (n_clock,)
) -> SoftTree:
    """The fold's tree without the padding."""
    features = fold.train.X.shape[1]
    own = _own_columns(fold, routing.shape[-1], leaves.shape[-1])
    tree = SoftTree(depth, features, family, 1, leaves.dtype).to(leaves.device)
    state = {"routing": routing[None, :, : features + 1], "leaves": leaves[None, :, own], "clock": clock[None]}
    tree.load_state_dict(state)
    tree.collapse_empty(fold.train.x.to(tree.leaves))
    return tree
