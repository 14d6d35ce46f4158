"""OptimalCostSensitiveTree: the classification tree of least cost, of errors and of the tests that the rows pay for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.classification import OptimalClassificationTree, checked_classes
from softsurv.estimators.separable import Training
from softsurv.estimators.solvers import solve_task
from softsurv.exact.objectives import label_costs
from softsurv.exact.split_costs import SplitCosts

FloatArray = NDArray[np.float64]


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


class OptimalCostSensitiveTree(OptimalClassificationTree):
    """Classification tree of least mean cost: misclassification by a matrix or by row, and the tests on the way.

    Parameters
    ----------
    misclassification_costs : array (K, K), optional
        Row: true class, column: predicted class, in sorted order; >= 0. 0 and 1 by default.
    feature_costs : mapping from name to number or mapping, optional
        A number is the cost of one column, a mapping has the fields of `FeatureTest`: several columns of one test,
        a group of tests, and the discounted cost. A row pays where it reaches a split, once per path for each test.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, path,
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

    def __init__(
        self,
        misclassification_costs: Any = None,
        feature_costs: Mapping[str, float | Mapping[str, Any]] | None = None,
        max_depth: int = 4,
        max_leaves: int | None = None,
        *,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        complexity: float = 0.0,
        thresholds: Any = DEFAULT_THRESHOLDS,
        max_levels: int | None = None,
        min_share: float = 0.0,
        path: bool = False,
        time_limit: float | None = 60.0,
        memory_limit: float = 1e9,
        n_jobs: int | None = 1,
        progress: bool = False,
    ) -> None:
        super(OptimalClassificationTree, self).__init__(
            max_depth,
            max_leaves,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            complexity=complexity,
            thresholds=thresholds,
            max_levels=max_levels,
            min_share=min_share,
            path=path,
            time_limit=time_limit,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            progress=progress,
        )
        self.misclassification_costs = misclassification_costs
        self.feature_costs = feature_costs

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

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        training = self._training(X, sample_weight)
        labels = checked_classes(y, training.n_given)[training.kept]
        self.classes_, self._codes = np.unique(labels, return_inverse=True)
        weight = training.rows.weight
        table = self._cost_table(costs, training) * weight[:, None]
        split_costs = self._split_costs(training)
        limits = self._limits()
        width = table.shape[1]
        solved = solve_task(
            label_costs.TASK if split_costs is None else label_costs.BRANCHING,
            table,
            training.rows,
            limits,
            label_of=lambda sums: label_costs.best_label(sums[:, :width]),
            scale=float(weight.sum()),
            split_costs=split_costs,
        )
        self._keep(training, solved, limits)
        del self._codes
        return self

    def _cost_table(self, costs: Any, training: Training) -> FloatArray:
        """Cost of every label for every row, (N, max(K, 2))."""
        k = len(self.classes_)
        if costs is None:
            given = self.misclassification_costs
            matrix = 1.0 - np.eye(k) if given is None else _costs("misclassification_costs", given, (k, k))
            table = label_costs.from_matrix(self._codes, matrix)
        else:
            table = _costs("costs", costs, (training.n_given, k))[training.kept]
        # with one class only, a second label that is never better
        return table if k > 1 else np.column_stack([table, table + 1.0])

    def _split_costs(self, training: Training) -> SplitCosts | None:
        if not self.feature_costs:
            return None
        known = set(self.binarizer_.filler_.input_names_)
        tests = {
            str(name): FeatureTest(**value) if isinstance(value, Mapping) else FeatureTest(float(value))
            for name, value in self.feature_costs.items()
        }
        test_of: dict[str, int] = {}
        for number, (name, test) in enumerate(tests.items()):
            for column in test.columns or (name,):
                if column not in known:
                    raise InvalidParameterError(f"feature_costs must name columns of X, got {column!r}")
                if column in test_of:
                    raise InvalidParameterError(f"feature_costs must name a column once, got {column!r} twice")
                test_of[column] = number
        groups = sorted({test.group for test in tests.values() if test.group is not None})
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


def _costs(name: str, values: Any, shape: tuple[int, int]) -> FloatArray:
    table = np.asarray(check_array(values, dtype=np.float64, input_name=name))
    if table.shape != shape:
        raise InvalidSurvivalDataError(f"{name} must have shape {shape}, got {table.shape}")
    if table.min() < 0:
        row, column = np.argwhere(table < 0)[0]
        raise InvalidSurvivalDataError(f"{name} must be >= 0, got {table[row, column]:g} at [{row}, {column}]")
    return table
