"""OptimalClassificationTree: a provably optimal classification tree as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators import auc_solvers, pareto_solvers  # noqa: F401  register F1, Matthews correlation and AUC
from softsurv.estimators.checks import number, one_of
from softsurv.estimators.separable import SeparableTree
from softsurv.estimators.solvers import CLASSIFIERS, CodedRows, Limits, Solved, register, solve_task
from softsurv.exact.objectives import label_costs

FloatArray = NDArray[np.float64]


class OptimalClassificationTree(ClassifierMixin, SeparableTree):
    """Classification tree with axis-parallel splits that is optimal for its objective, or says how far it may be.

    Parameters
    ----------
    objective : str
        "accuracy": share of the weight misclassified, rows weighted by ``class_weight`` where given.
        "balanced_accuracy": mean over classes of the share misclassified. Further objectives as registered in
        ``softsurv.estimators.solvers.CLASSIFIERS``.
    max_depth : int
        0 (a single leaf) to 10.
    max_leaves : int, optional
        No more than ``2**max_depth`` by default.
    class_weight : mapping from class to number, or "balanced", optional
        For "accuracy" and "weighted_accuracy", which is the same and asks for it: weight of the rows of each class, 1
        where a class is not named; "balanced" gives every class the same total.
    false_positive_rate : float
        For "partial_auc": the largest rate that counts, in (0, 1].
    min_samples_leaf : int
        Least rows per leaf.
    min_weight_fraction_leaf : float
        Least share of the total weight per leaf, up to 0.5, in the place of ``min_samples_leaf``.
    complexity : float
        Cost per leaf, in the unit of the objective: 0.01 asks a leaf to classify 1 % of the weight better.
    thresholds, max_levels, min_share
        Splits to choose from, as in `Binarizer`: ten quantiles of each number by default; "all" loses nothing.
    path : bool
        Whether to find the best trees with fewer leaves too, see ``path_``.
    time_limit : float, optional
        Seconds after which the best tree so far is returned with its bound, and a `ConvergenceWarning`.
    memory_limit : float
        Bytes for the cache of subproblems.
    n_jobs : int, optional
        Threads, -1 for all cores; the tree does not depend on it.
    progress : bool
        Show a progress bar with bound and incumbent.

    Attributes
    ----------
    classes_ : ndarray (K,)
    tree_ : HardTree
        Splits in the data's units, with the share of each class in each leaf.
    label_ : ndarray (L,)
        Class of each leaf, as a place in ``classes_``.
    objective_, lower_bound_, gap_ : float
        Objective of the tree on the training rows, what no tree can fall below, and the difference.
    status_ : Status
    path_ : tuple of SizedTree
        Best trees with at most 1, 2, ... leaves where ``path`` asks for them, else the tree alone.
    report_ : FitReport
    binarizer_ : Binarizer

    References
    ----------
    Lin et al. (2020), Generalized and scalable optimal sparse decision trees (paper `gosdt`). Van der Linden et al.
    (2023), Necessary and sufficient conditions for optimal decision trees using dynamic programming (paper `streed`).

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv import OptimalClassificationTree
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> tree = OptimalClassificationTree(max_depth=2).fit(X, X[:, 0] ^ X[:, 1])
    >>> tree.objective_, tree.tree_.n_leaves
    (0.0, 4)
    """

    def __init__(
        self,
        objective: str = "accuracy",
        max_depth: int = 4,
        max_leaves: int | None = None,
        *,
        class_weight: Mapping[Any, float] | str | None = None,
        false_positive_rate: float = 0.1,
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
        super().__init__(
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
        self.objective = objective
        self.class_weight = class_weight
        self.false_positive_rate = false_positive_rate

    # -- fitting -------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OptimalClassificationTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            May hold categories (in a frame) and missing values.
        y : (n,)
            Classes: numbers, text or booleans.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        one_of("objective", self.objective, tuple(CLASSIFIERS))
        training = self._training(X, sample_weight)
        labels = checked_classes(y, training.n_given)[training.kept]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._codes = codes
        limits = self._limits()
        self._keep(training, CLASSIFIERS[self.objective](training.rows, codes, limits, self), limits)
        del self._codes
        return self

    def _leaf_values(self, label: NDArray[Any], leaf: NDArray[np.int64], weight: FloatArray) -> tuple[Any, list[str]]:
        k = len(self.classes_)
        total = np.bincount(leaf * k + self._codes, weight, len(label) * k).reshape(-1, k)
        return total / total.sum(axis=1, keepdims=True), [f"share of {name}" for name in self.classes_]

    def _leaf_text(self, k: int) -> str:
        answer = int(self.label_[k])
        return f"{self.classes_[answer]}, share {self.tree_.value[k, answer]:.3g}"

    # -- predictions ---------------------------------------------------------------------------------------------
    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row, (n,)."""
        leaf = self.apply(X)
        return np.asarray(self.classes_[self.label_[leaf]])

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class among the training weight in the leaf of each row, (n, K).

        The most frequent class need not be the one predicted: other objectives weight classes.
        """
        leaf = self.apply(X)
        return np.asarray(self.tree_.value[leaf])

    # -- saving --------------------------------------------------------------------------------------------------
    def _own_state(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "kind": self.classes_.dtype.str}

    def _restore_own(self, state: dict[str, Any]) -> None:
        kind = state["kind"]
        self.classes_ = np.array(state["classes"], dtype=object if kind == "|O" else kind)


def checked_classes(y: Any, n: int) -> NDArray[Any]:
    """Classes (N,) as given."""
    if y is None:
        raise InvalidSurvivalDataError("requires y to be passed, but the target y is None")
    labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0), warn=True)
    check_classification_targets(labels)
    if len(labels) != n:
        raise InvalidSurvivalDataError(f"y must have one class for each of the {n} rows of X, got {len(labels)}")
    return np.asarray(labels)


# -- objectives ----------------------------------------------------------------------------------------------------
def _solve(rows: CodedRows, label: NDArray[np.int64], limits: Limits, row_weight: FloatArray) -> Solved:
    """Least misclassified share of the given row weights."""
    statistics = label_costs.misclassification(label, int(label.max()) + 1, row_weight)
    return solve_task(
        label_costs.TASK,
        statistics,
        rows,
        limits,
        label_of=label_costs.best_label,
        weight=row_weight,
        scale=float(row_weight.sum()),
    )


@register("accuracy")
def solve_accuracy(rows: CodedRows, label: NDArray[np.int64], limits: Limits, p: Any) -> Solved:
    """One minus accuracy, rows weighted by class where the estimator says so."""
    return _solve(rows, label, limits, rows.weight * class_weights(p, rows, label)[label])


@register("weighted_accuracy")
def solve_weighted(rows: CodedRows, label: NDArray[np.int64], limits: Limits, p: Any) -> Solved:
    """One minus accuracy under a ``class_weight`` that has to be there."""
    if p.class_weight is None:
        raise InvalidParameterError("class_weight must be given for objective='weighted_accuracy', got None")
    return solve_accuracy(rows, label, limits, p)


@register("balanced_accuracy")
def solve_balanced(rows: CodedRows, label: NDArray[np.int64], limits: Limits, p: Any) -> Solved:
    """One minus the mean recall: every class weighs the same."""
    return _solve(rows, label, limits, rows.weight / np.bincount(label, rows.weight)[label])


def class_weights(p: Any, rows: CodedRows, label: NDArray[np.int64]) -> FloatArray:
    """Weight of each class, (K,), as ``class_weight`` says."""
    if p.class_weight is None:
        return np.ones(len(p.classes_))
    if isinstance(p.class_weight, str):
        one_of("class_weight", p.class_weight, ("balanced",))
        by_class = np.bincount(label, rows.weight)
        return np.asarray(by_class.sum() / (len(by_class) * by_class))
    known = p.classes_.tolist()
    for name, value in p.class_weight.items():
        if name not in known:
            raise InvalidParameterError(f"class_weight must name classes of y, {known}, got {name!r}")
        number(f"class_weight[{name!r}]", value, 0.0)
    weights = np.array([float(p.class_weight.get(name, 1.0)) for name in known])
    if not weights.any():
        raise InvalidParameterError("class_weight must be > 0 for some class, got 0 for all")
    return weights
