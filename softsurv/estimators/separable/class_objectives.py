"""Objectives of classification by name, each with its solver; here those that are sums over rows.

A *solver* is a function

    solver(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved

registered under the name of its objective with `register`. Further ones are in `measures.py` and `auc.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.classifier import Classes
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.solve import Solved, problem_of, solve_task
from softsurv.estimators.shared.checks import number, one_of
from softsurv.estimators.shared.inputs import BinnedRows
from softsurv.exact.objectives import impurity, label_costs
from softsurv.exact.rashomon.problem import SearchProblem


@dataclass(frozen=True)
class ClassOptions:
    """Arguments of `OptimalClassificationTree` that single objectives read."""

    class_weight: Mapping[Any, float] | str | None = None
    false_positive_rate: float = 0.1


Solver = Callable[[BinnedRows, Classes, SearchLimits, ClassOptions], Solved]

CLASSIFIERS: dict[str, Solver] = {}
"""The solver of each classification objective."""

UNWEIGHTED: set[str] = set()
"""Objectives that do not read ``class_weight``, and refuse it."""


def register(name: str, *, reads_class_weight: bool = True) -> Callable[[Solver], Solver]:
    """Make a function the solver of a classification objective."""

    def add(solver: Solver) -> Solver:
        if name in CLASSIFIERS:
            raise InvalidParameterError(f"objective {name!r} has a solver already; choose another name")
        CLASSIFIERS[name] = solver
        if not reads_class_weight:
            UNWEIGHTED.add(name)
        return solver

    return add


@dataclass(frozen=True)
class ClassObjective:
    """A registered objective over the classes of the training rows."""

    name: str
    classes: Classes
    options: ClassOptions

    def __post_init__(self) -> None:
        if self.options.class_weight is not None and self.name in UNWEIGHTED:
            raise InvalidParameterError(
                f"class_weight must be None for objective={self.name!r}, which does not read it, got "
                f"{self.options.class_weight!r}; leave it out, or take 'accuracy'"
            )

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        return CLASSIFIERS[self.name](rows, self.classes, limits, self.options)

    def leaf_values(self, label: NDArray[Any], leaf: IntArray, weight: FloatArray) -> tuple[FloatArray, list[str]]:
        """Share of each class in each leaf, (L, K)."""
        return self.classes.leaf_values(label, leaf, weight)


@register("accuracy")
def solve_accuracy(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
    """One minus accuracy, rows weighted by class where ``class_weight`` says so."""
    return _fewest_errors(rows, classes, limits, row_weights("accuracy", rows, classes, options))


@register("weighted_accuracy")
def solve_weighted(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
    """One minus accuracy under a ``class_weight`` that has to be there."""
    if options.class_weight is None:
        raise InvalidParameterError("class_weight must be given for objective='weighted_accuracy', got None")
    return solve_accuracy(rows, classes, limits, options)


@register("balanced_accuracy", reads_class_weight=False)
def solve_balanced(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
    """One minus the mean recall: every class weighs the same."""
    return _fewest_errors(rows, classes, limits, row_weights("balanced_accuracy", rows, classes, options))


def _register_impurity(name: str) -> None:
    @register(name)
    def solve(rows: BinnedRows, classes: Classes, limits: SearchLimits, options: ClassOptions) -> Solved:
        """Mean impurity of the leaves, rows weighted by class where ``class_weight`` says so."""
        weight = row_weights(name, rows, classes, options)
        return solve_task(
            impurity.TASKS[name], impurity.statistics(classes.label, classes.k, weight), rows, limits,
            label_of=impurity.most_frequent, weight=weight, scale=float(weight.sum()),
        )  # fmt: skip


for _name in impurity.TASKS:
    _register_impurity(_name)


ERRORS = ("accuracy", "weighted_accuracy", "balanced_accuracy")
"""Objectives that are misclassified weight."""


def row_weights(objective: str, rows: BinnedRows, classes: Classes, options: ClassOptions) -> FloatArray:
    """What each row weighs in an objective of `ERRORS`, (N,)."""
    if objective == "balanced_accuracy":
        return np.asarray(rows.weight / np.bincount(classes.label, rows.weight)[classes.label])
    return rows.weight * class_weights(options.class_weight, rows, classes)[classes.label]


def error_problem(objective: ClassObjective, rows: BinnedRows, limits: SearchLimits) -> tuple[SearchProblem, float]:
    """The search problem of an objective of `ERRORS`, and the number that divides its costs."""
    classes, weight = objective.classes, row_weights(objective.name, rows, objective.classes, objective.options)
    statistics, scale = label_costs.misclassification(classes.label, classes.k, weight), float(weight.sum())
    return problem_of(label_costs.TASK, statistics, rows, limits, weight=weight, scale=scale), scale


def _fewest_errors(rows: BinnedRows, classes: Classes, limits: SearchLimits, row_weight: FloatArray) -> Solved:
    """Least misclassified share of the given row weights."""
    return solve_task(
        label_costs.TASK,
        label_costs.misclassification(classes.label, classes.k, row_weight),
        rows,
        limits,
        label_of=label_costs.best_label,
        weight=row_weight,
        scale=float(row_weight.sum()),
    )


def class_weights(class_weight: Mapping[Any, float] | str | None, rows: BinnedRows, classes: Classes) -> FloatArray:
    """Weight of each class, (K,), as ``class_weight`` says."""
    if class_weight is None:
        return np.ones(classes.k)
    if isinstance(class_weight, str):
        one_of("class_weight", class_weight, ("balanced",))
        by_class = np.bincount(classes.label, rows.weight)
        return np.asarray(by_class.sum() / (len(by_class) * by_class))
    known = classes.names.tolist()
    if not hasattr(class_weight, "items"):
        raise InvalidParameterError(f"class_weight must map classes, {known}, to numbers, got {class_weight!r}")
    for name, value in class_weight.items():
        if name not in known:
            raise InvalidParameterError(f"class_weight must name classes of y, {known}, got {name!r}")
        number(f"class_weight[{name!r}]", value, 0.0)
    weights = np.array([float(class_weight.get(name, 1.0)) for name in known])
    if not weights.any():
        raise InvalidParameterError("class_weight must be > 0 for some class, got 0 for all")
    return weights
