"""Cross-validation with all folds, settings and starts trained as stacks: groups are folds.

Every fold has its own preprocessing, time scale and censoring curve, fitted on its training rows.
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
from softsurv.metrics.ranges import default_grid, survival_from_log_cumulative_hazard
from softsurv.nonparametric import StepFunction
from softsurv.soft.held_out import HeldOut, TrainingTimes, measure_stacks, two_groups
from softsurv.soft.many import OfMany, fit_many
from softsurv.soft.one_pass import by_operators
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import time_floor
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import TrainingRows
from softsurv.trees.soft_tree import SoftTree


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one fold, encoded by the training rows, and their censoring curve."""

    rows: TrainingRows
    test: SurvivalData
    censoring: StepFunction
    _on_device: dict[tuple[torch.device, torch.dtype], HeldOut] = field(default_factory=dict, repr=False, compare=False)

    @property
    def train(self) -> SurvivalData:
        """The training rows."""
        return self.rows.data

    @cached_property
    def outcome(self) -> dict[str, Any]:
        """The outcomes of the test rows, as measures take them."""
        return outcome(self.test, time_floor(self.train.time))

    @cached_property
    def two_groups(self) -> BoolArray | None:
        """Members (N,) of the last of two groups; None where there are no groups or not two."""
        return two_groups(self.test)

    def on_device(self, like: Tensor) -> HeldOut:
        """The test rows on the device of ``like``, ready to measure stacks of trees; kept for each device and type."""
        key = like.device, like.dtype
        if key not in self._on_device:
            time, event = self.train.time.numpy(), self.train.event.numpy()
            ends = float(time.max()), float(default_grid(time, event)[0])
            known = TrainingTimes(self.censoring, time_floor(self.train.time), *ends)
            self._on_device[key] = HeldOut(self.test, self.test.x, known, like)
        return self._on_device[key]


def make_folds(data: SurvivalData, n_folds: int = 5, seed: int = 0, preprocess: bool = True) -> list[Fold]:
    """Seeded, event-stratified folds, each encoded by a preprocessor fitted on its own training rows."""
    return [prepare_fold(data, rows, preprocess) for rows in folds_of_content(data, n_folds, seed)]


def folds_of_content(data: SurvivalData, n_folds: int = 5, seed: int = 0) -> list[tuple[IntArray, IntArray]]:
    """Training and test rows of each fold, by the rows' content and not by their order; subjects stay whole."""
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
        Trees that trained as one stack with the recipe's, of all recipes, folds and starts.
    seconds : float
        The recipe's share of the time of its stacks, plus the time of its measures.
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
    rows = [fold.rows for fold in folds]
    if by_operators(machine.device):
        return cross_validate_on_device(rows, [fold.on_device(machine.like) for fold in folds], recipes, machine)
    measured = []
    for of_recipe in fit_many(rows, recipes, machine):
        began = time.perf_counter()
        found = [measure_fold(fold, one.tree) for fold, one in zip(folds, of_recipe, strict=True)]
        seconds = time.perf_counter() - began + sum(one.report.seconds for one in of_recipe)
        measured.append(Measured(found, _together(of_recipe), seconds))
    return measured


def _together(of_recipe: Sequence[OfMany]) -> int:
    """Trees that trained as one stack with those of a recipe."""
    return max(one.together for one in of_recipe)


def cross_validate_on_device(
    rows: Sequence[TrainingRows], held_out: Sequence[HeldOut], recipes: Sequence[Recipe], machine: Machine
) -> list[Measured]:
    """The same by operators of a device, on which the held-out rows lie: nothing waits for it before the scores."""
    began = time.perf_counter()
    fitted = fit_many(rows, recipes, machine)
    results = measure_on_device(held_out, fitted)
    share = (time.perf_counter() - began) / len(fitted)
    return [Measured(r, _together(of_recipe), share) for r, of_recipe in zip(results, fitted, strict=True)]


def measure_on_device(held_out: Sequence[HeldOut], fitted: Sequence[Sequence[OfMany]]) -> list[list[dict[str, Any]]]:
    """The measures of each recipe's trees (R) on all held-out rows (F). Trees that are alike form one stack.

    All scores come to the host together, once it is known that no fit failed.
    """

    def finished() -> None:
        for one in (one for of_recipe in fitted for one in of_recipe):
            one.refuse_failed()

    return measure_stacks(held_out, [[one.of_causes for one in of_recipe] for of_recipe in fitted], finished)


def fit_folds(folds: Sequence[Fold], recipe: Recipe, machine: Machine | None = None) -> list[SoftTree]:
    """The tree of each fold, from the start with the lowest training objective."""
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
        result["fairness"] = curve_gap(survival, times, group, fold.outcome["weight"]).mean
    return result
