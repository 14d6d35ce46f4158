"""OptimalCostSensitiveTree: the classification tree of least cost, of errors and of the tests that the rows pay for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.classifier import Classes, TreeClassifier
from softsurv.estimators.separable.limits import SearchArguments, SearchLimits
from softsurv.estimators.separable.solve import Solved, solve_task
from softsurv.estimators.separable.tree import TrainingTable
from softsurv.estimators.shared.checks import number
from softsurv.estimators.shared.inputs import BinnedRows, checked_matrix, refuse_other_order
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.exact.objectives import label_costs
from softsurv.exact.split_costs import SplitCosts


@dataclass(frozen=True)
class FeatureTest:
    """A test that yields the values of one or more columns.

    Attributes
    ----------
    cost : float
        What each row that reaches a split on one of the columns pays, once per path.
    columns : tuple of str
        The columns; the name of the test itself where empty.
    group : str, optional
        Tests of one group share costs.
    discounted : float, optional
        Cost once another test of the group has been made on the path.
    """

    cost: float
    columns: tuple[str, ...] = ()
    group: str | None = None
    discounted: float | None = None


@dataclass(eq=False, repr=False)
class OptimalCostSensitiveTree(TreeClassifier, SearchArguments):
    """Classification tree of least mean cost: misclassification by a matrix or by row, and the tests on the way.

    Parameters
    ----------
    misclassification_costs : array (K, K), optional
        Row: true class, column: predicted class, in sorted order; >= 0. 0 and 1 by default.
    feature_costs : mapping from name to number or mapping, optional
        A number is the cost of one column, a mapping has the fields of `FeatureTest`: several columns of one test,
        a group of tests, and the discounted cost. A row pays where it reaches a split, once per path for each test.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, missing, path,
    time_limit, memory_limit, n_jobs, progress
        As in `OptimalClassificationTree`.
    complexity : float
        Cost per leaf, in the unit of the mean cost per row.

    Attributes
    ----------
    objective_, lower_bound_, gap_ : float
        Mean cost per unit of weight on the training rows (plus the cost of the leaves), its lower bound, and the
        difference.
    classes_, tree_, label_, status_, path_, report_, binarizer_
        As in `OptimalClassificationTree`.

    References
    ----------
    Van der Linden et al. (2023), paper `streed`, eq. 8 and Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv import OptimalCostSensitiveTree
    >>> X, y = np.array([[0], [0], [1], [1]] * 5), np.array([0, 0, 1, 1] * 5)
    >>> tree = OptimalCostSensitiveTree([[0, 1], [10, 0]], {"x0": 0.2}, max_depth=1).fit(X, y)
    >>> round(tree.objective_, 3), tree.tree_.n_leaves
    (0.2, 2)
    """

    misclassification_costs: Any = None
    feature_costs: Mapping[str, float | Mapping[str, Any]] | None = None
    max_depth: int = 4
    max_leaves: int | None = None

    @one_fit_at_a_time
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, costs: Any = None) -> OptimalCostSensitiveTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            May hold categories (in a frame) and missing values.
        y : (n,)
            True classes.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.
        costs : (n, K), optional
            Cost of predicting each class for each row, >= 0, in the place of ``misclassification_costs``.

        Raises
        ------
        InvalidParameterError
            An argument of the estimator is out of range, or ``feature_costs`` names no column or one twice.
        InvalidSurvivalDataError
            A column or a table of costs has the wrong shape, or holds a value that it may not.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        training = self._training(X, sample_weight, y=y, costs=costs)
        classes = Classes.read(y, training)
        self.classes_ = classes.names
        if costs is None:
            table = costs_by_class(self.misclassification_costs, classes)
        else:
            table = _checked_costs("costs", costs, training.n_given, classes.names)[training.kept]
        self._solve(training, CostObjective(classes, table, split_costs(self.feature_costs, training)))
        return self


@dataclass(frozen=True)
class CostObjective:
    """Mean cost of the labels, and of the tests on the way where there are some.

    Attributes
    ----------
    classes : Classes
    table : (N, K)
        Cost of predicting each class for each row.
    split_costs : SplitCosts or None
    """

    classes: Classes
    table: FloatArray
    split_costs: SplitCosts | None

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        table = self.table
        if self.classes.k == 1:  # the search takes at least two labels: the second is never the better one
            table = np.column_stack([table, table + 1.0])
        return solve_task(
            label_costs.TASK,
            table * rows.weight[:, None],
            rows,
            limits,
            label_of=lambda sums: label_costs.best_label(sums[:, : table.shape[1]]),
            scale=float(rows.weight.sum()),
            split_costs=self.split_costs,
        )

    def leaf_values(self, label: NDArray[Any], leaf: IntArray, weight: FloatArray) -> tuple[FloatArray, list[str]]:
        """Share of each class in each leaf, (L, K)."""
        return self.classes.leaf_values(label, leaf, weight)


def costs_by_class(given: Any, classes: Classes) -> FloatArray:
    """Cost of every label for every row, (N, K), from a matrix of true by predicted class; 0 and 1 where None."""
    k = classes.k
    if isinstance(given, pd.DataFrame):
        refuse_other_order("the rows of misclassification_costs", given.index, classes.names)
    matrix = 1.0 - np.eye(k) if given is None else _checked_costs("misclassification_costs", given, k, classes.names)
    return label_costs.from_matrix(classes.label, matrix)


def _test(name: Any, value: Any) -> FeatureTest:
    """A test as ``feature_costs`` tells it: its cost, or the fields of `FeatureTest`."""
    known = set(FeatureTest.__dataclass_fields__)
    given = dict(value) if isinstance(value, Mapping) else {"cost": value}
    if "cost" not in given or not given.keys() <= known:
        raise InvalidParameterError(
            f"feature_costs[{name!r}] must be a number, or hold cost and no more than {', '.join(sorted(known))}, got "
            f"{value!r}"
        )
    columns, group = given.get("columns"), given.get("group")
    columns = () if columns is None else columns
    if isinstance(columns, str) or not isinstance(columns, Iterable) or not isinstance(group, Hashable):
        raise InvalidParameterError(
            f"columns of feature_costs[{name!r}] must be a list, and group a name, got {value!r}"
        )
    test = FeatureTest(**given | {"columns": tuple(columns)})
    for field in ("cost", "discounted"):
        if field == "cost" or test.discounted is not None:
            number(f"{field} of feature_costs[{name!r}]", getattr(test, field), 0.0)
    if test.discounted is not None and test.discounted > test.cost:
        raise InvalidParameterError(f"discounted of feature_costs[{name!r}] must be at most its cost, got {value!r}")
    return test


def split_costs(
    feature_costs: Mapping[str, float | Mapping[str, Any]] | None, training: TrainingTable
) -> SplitCosts | None:
    """What the engine takes for the costs of the tests; None where there are none."""
    if feature_costs is None:
        return None
    if not isinstance(feature_costs, Mapping):
        raise InvalidParameterError(f"feature_costs must name the cost of each feature or test, got {feature_costs!r}")
    if not feature_costs:
        return None
    tests = {str(name): _test(name, value) for name, value in feature_costs.items()}
    test_of = _test_of_columns(tests, set(training.binarizer.filler_.input_names_))
    groups = list(dict.fromkeys(test.group for test in tests.values() if test.group is not None))
    full = [test.cost for test in tests.values()]
    reduced = [test.cost if test.discounted is None else test.discounted for test in tests.values()]
    group = [-1 if test.group is None else groups.index(test.group) for test in tests.values()]
    free = [name for name in dict.fromkeys(training.rows.sources) if name not in test_of]
    test_of |= {name: len(full) + k for k, name in enumerate(free)}
    return SplitCosts(
        np.array(full + [0.0] * len(free)),
        np.array([test_of[name] for name in training.rows.sources], dtype=int),
        training.rows.weight,
        np.array(reduced + [0.0] * len(free)),
        np.array(group + [-1] * len(free)),
    )


def _test_of_columns(tests: Mapping[str, FeatureTest], known: set[str]) -> dict[str, int]:
    """Number of the test that yields each column."""
    test_of: dict[str, int] = {}
    for place, (name, test) in enumerate(tests.items()):
        for column in test.columns or (name,):
            if column not in known:
                raise InvalidParameterError(f"feature_costs must name columns of X, got {column!r}")
            if column in test_of:
                raise InvalidParameterError(f"feature_costs must name a column once, got {column!r} twice")
            test_of[column] = place
    return test_of


def _checked_costs(name: str, values: Any, n: int, names: NDArray[Any]) -> FloatArray:
    """Costs of predicting each class, (n, K)."""
    table, shape = checked_matrix(name, values, names), (n, len(names))
    if table.shape != shape:
        raise InvalidSurvivalDataError(f"{name} must have shape {shape}, got {table.shape}")
    if table.min() < 0:
        row, column = np.argwhere(table < 0)[0]
        raise InvalidSurvivalDataError(f"{name} must be >= 0, got {table[row, column]:g} at [{row}, {column}]")
    return table
