"""Cross-validation with all folds, settings and starts trained as stacks: groups are folds.

Every fold has its own preprocessing, time_scale and censoring curve, fitted on its training rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.canonical import column_order, row_order
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.metrics.evaluate import evaluate_with_censoring, outcome, training_censoring
from softsurv.metrics.fairness import curve_gap
from softsurv.metrics.ranges import refuse_nan, survival_from_log_cumulative_hazard
from softsurv.metrics.stacked import StackedFold
from softsurv.nonparametric import StepFunction
from softsurv.soft.many import OfMany, alike, fit_many
from softsurv.soft.one_pass import by_operators
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import time_floor
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import TrainingRows
from softsurv.trees.soft_tree import SoftTree, joined


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one fold, encoded by the training rows, and their censoring curve."""

    rows: TrainingRows
    test: SurvivalData
    censoring: StepFunction
    _on_device: dict[torch.device, StackedFold] = field(default_factory=dict, repr=False, compare=False)

    @property
    def train(self) -> SurvivalData:
        """The training rows."""
        return self.rows.data

    @cached_property
    def outcome(self) -> dict[str, Any]:
        """What measures take of the test rows."""
        return outcome(self.test, time_floor(self.train.time))

    @cached_property
    def two_groups(self) -> BoolArray | None:
        """Members (N,) of the last of two groups; None without, or with other numbers of them."""
        group = self.test.group
        if group is None or group.unique().numel() != 2:
            return None
        return np.asarray((group == group.max()).numpy())

    def on_device(self, like: Tensor) -> StackedFold:
        """The test rows, ready to measure stacks of trees there, worked out once for a device."""
        if like.device not in self._on_device:
            self._on_device[like.device] = StackedFold(self.censoring, self.outcome, like, self.two_groups)
        return self._on_device[like.device]


def make_folds(data: SurvivalData, n_folds: int = 5, seed: int = 0, preprocess: bool = True) -> list[Fold]:
    """Seeded, event-stratified folds, each encoded by a preprocessor fitted on its own training rows."""
    return [prepare_fold(data, rows, preprocess) for rows in folds_of_content(data, n_folds, seed)]


def folds_of_content(data: SurvivalData, n_folds: int = 5, seed: int = 0) -> list[tuple[IntArray, IntArray]]:
    """Training and test rows of each fold, which depend on the rows' content and not on their order; subjects whole."""
    order = row_order(data, column_order(data.X, data))
    return [(order[train], order[test]) for train, test in data.take(order).folds(n_folds, seed)]


def prepare_fold(data: SurvivalData, rows: tuple[IntArray, IntArray], preprocess: bool = True) -> Fold:
    """One fold from its training and test rows."""
    train_, test = data.take(rows[0]), data.take(rows[1])
    censoring = training_censoring(train_)
    if preprocess:
        encoder = Preprocessor().fit_checked(train_.X, named=True, order=column_order(train_.X, train_))
        train_, test = (part.with_features(encoder.transform(part.X)) for part in (train_, test))
    return Fold(TrainingRows(train_), test, censoring)


@dataclass(frozen=True)
class Measured:
    """Held-out measures of a recipe in every fold.

    Attributes
    ----------
    folds : list of dict
    together : int
        Trees that trained as one stack with it, of all recipes, folds and starts.
    seconds : float
        Its share of the time of its stacks, and the time of its measures.
    """

    folds: list[dict[str, Any]]
    together: int
    seconds: float


def cross_validate_many(
    folds: Sequence[Fold], recipes: Sequence[Recipe], machine: Machine | None = None
) -> list[Measured]:
    """Held-out measures of each recipe in every fold: recipes that are alike train as one stack (`softsurv.soft.many`).

    Raises
    ------
    NumericalError
        If a fit of a stack leaves the finite numbers.
    """
    machine = Machine(torch.device("cpu")) if machine is None else machine
    began = time.perf_counter()
    fitted = fit_many([fold.rows for fold in folds], recipes, machine)
    if by_operators(machine.device):
        results = measure_on_device(folds, recipes, fitted)
        share = (time.perf_counter() - began) / len(fitted)
        return [Measured(r, _together(of_recipe), share) for r, of_recipe in zip(results, fitted, strict=True)]
    measured = []
    for of_recipe in fitted:
        began = time.perf_counter()
        found = [measure_fold(fold, one.tree) for fold, one in zip(folds, of_recipe, strict=True)]
        seconds = time.perf_counter() - began + sum(one.report.seconds for one in of_recipe)
        measured.append(Measured(found, _together(of_recipe), seconds))
    return measured


def _together(of_recipe: Sequence[OfMany]) -> int:
    """Trees that trained as one stack with those of a recipe."""
    return max(one.together for one in of_recipe)


def measure_on_device(
    folds: Sequence[Fold], recipes: Sequence[Recipe], fitted: Sequence[Sequence[OfMany]]
) -> list[list[dict[str, Any]]]:
    """:func:`measure_fold` of each recipe's tree (R) in every fold (F), those that are alike as one stack.

    All scores come to the host together, after the word whether a fit failed.
    """
    groups, like = alike(recipes), fitted[0][0].tree.leaves
    plans = [fold.on_device(like) for fold in folds]
    found = []
    for f, fold in enumerate(folds):
        stacks = (joined([fitted[k][f].tree for k in members]) for members in groups)
        found.append(torch.cat([_of_stack(plans[f], fold.test.x.to(like), stack) for stack in stacks], 1))  # (K, R)
    for one in (one for of_recipe in fitted for one in of_recipe):
        one.refuse_failed()
    places = np.argsort([k for members in groups for k in members])
    scores = [table.cpu().numpy()[:, places] for table in found]
    for table in scores:
        refuse_nan("log_cumulative_hazard", table)
    return [
        [
            dict(zip(plan.names, of_fold[:, k].tolist(), strict=True)) | plan.facts
            for plan, of_fold in zip(plans, scores, strict=True)
        ]
        for k in range(len(fitted))
    ]


def _of_stack(plan: StackedFold, x: Tensor, stack: SoftTree) -> Tensor:
    """The measures of a stack of trees on test rows (N, P), (K, M)."""

    def log_hazard(times: Tensor) -> Tensor:
        return stack.log_cumulative_hazard(x, times)

    with torch.no_grad():
        return plan.measures(log_hazard, stack.n_trees)


def fit_folds(folds: Sequence[Fold], recipe: Recipe, machine: Machine | None = None) -> list[SoftTree]:
    """The tree of each fold: of its starts the one with the lowest training objective."""
    (found,) = fit_many([fold.rows for fold in folds], [recipe], machine)
    return [one.tree for one in found]


def measure_fold(fold: Fold, tree: SoftTree) -> dict[str, Any]:
    """Measures of a fold's tree on its test rows."""
    x = fold.test.x.to(tree.leaves)

    def log_hazard(times: FloatArray) -> FloatArray:
        grid = torch.as_tensor(np.where(times > 0, times, 1.0)).to(tree.leaves)
        with torch.no_grad():
            values = tree.log_cumulative_hazard(x, grid)[0].double().cpu().numpy()
        values[:, times <= 0] = -np.inf
        return values

    result = evaluate_with_censoring(fold.censoring, **fold.outcome, log_cumulative_hazard=log_hazard)
    if (group := fold.two_groups) is not None:
        first, last = result["range"]
        times = np.linspace(first, last, result["n_times"])
        survival = survival_from_log_cumulative_hazard(log_hazard(times))
        result["fairness"] = curve_gap(survival, times, group).mean
    return result
