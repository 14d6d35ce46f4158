"""OptimalRegressionTree: a provably optimal regression tree as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.separable.limits import SearchArguments, SearchLimits
from softsurv.estimators.separable.solve import Solved, solve_task
from softsurv.estimators.separable.tree import SeparableTree
from softsurv.estimators.shared.inputs import BinnedRows, checked_target
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.exact.objectives import squared_error

LARGEST = 1e140
"""Distance of a target from the mean, at most: sums of squares must stay finite."""


@dataclass(eq=False, repr=False)
class OptimalRegressionTree(RegressorMixin, SeparableTree, SearchArguments):
    """Regression tree with constant leaves of least squared error, or with the gap it may have.

    Parameters
    ----------
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, missing, path,
    time_limit, memory_limit, n_jobs, progress
        As in `OptimalClassificationTree`.
    complexity : float
        Cost per leaf, in the unit of the objective, the mean squared error.

    Attributes
    ----------
    tree_ : HardTree
        Splits in the data's units, with the mean of each leaf.
    label_ : ndarray (L,)
        Mean of each leaf.
    objective_, lower_bound_, gap_ : float
        Mean squared error of the training rows (plus the cost of the leaves), its lower bound, and the difference.
    status_, path_, report_, binarizer_
        As in `OptimalClassificationTree`.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv import OptimalRegressionTree
    >>> X = np.arange(8.0)[:, None]
    >>> tree = OptimalRegressionTree(max_depth=1).fit(X, [1, 1, 1, 1, 5, 5, 5, 5])
    >>> tree.objective_, tree.predict([[0.0], [7.0]]).tolist()
    (0.0, [1.0, 5.0])
    """

    max_depth: int = 4
    max_leaves: int | None = None

    @one_fit_at_a_time
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OptimalRegressionTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            May hold categories (in a frame) and missing values.
        y : (n,)
            Finite numbers.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.

        Raises
        ------
        InvalidParameterError
            An argument of the estimator is out of range.
        InvalidSurvivalDataError
            A column has the wrong length, or holds values that cannot be used.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        training = self._training(X, sample_weight, y=y)
        values = checked_target(y, training.n_given)[training.kept]
        self._solve(training, SquaredError(values))
        return self

    def _leaf_text(self, k: int) -> str:
        return f"mean {self.label_[k]:.6g}"

    def predict(self, X: Any) -> FloatArray:
        """Mean of each row's leaf, (n,)."""
        leaf = self.apply(X)
        return np.asarray(self.label_[leaf])


@dataclass(frozen=True)
class SquaredError:
    """Mean squared error of the targets (N,) of the training rows."""

    values: FloatArray

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        centre = float(np.average(self.values, weights=rows.weight))
        centred = self.values - centre
        farthest = self.values[np.abs(centred).argmax()]
        if abs(farthest - centre) > LARGEST:
            raise InvalidSurvivalDataError(
                f"y must lie within {LARGEST:g} of its mean, got {farthest:g}: squares are summed; take another unit"
            )
        return solve_task(
            squared_error.TASK,
            squared_error.statistics(centred, rows.weight),
            rows,
            limits,
            label_of=lambda sums: squared_error.best_value(sums) + centre,
            offset=squared_error.offset(centred, rows.weight),
            scale=float(rows.weight.sum()),
        )

    def leaf_values(self, label: NDArray[Any], leaf: IntArray, weight: FloatArray) -> tuple[FloatArray, list[str]]:
        """Mean of each leaf, (L, 1)."""
        return label[:, None], ["mean"]
