"""OptimalClassificationTree: a provably optimal classification tree as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

from softsurv.estimators.rashomon import HasRashomonSet, NearSource, refuse_objective, rows_are_gone
from softsurv.estimators.separable import auc, measures  # noqa: F401  register F1, Matthews correlation and AUC
from softsurv.estimators.separable.class_objectives import (
    CLASSIFIERS,
    ERRORS,
    ClassObjective,
    ClassOptions,
    error_problem,
)
from softsurv.estimators.separable.classifier import Classes, TreeClassifier
from softsurv.estimators.separable.limits import SearchArguments
from softsurv.estimators.separable.solve import Solved
from softsurv.estimators.shared.checks import one_of
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.exact.objectives import label_costs
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport


@dataclass(eq=False, repr=False)
class OptimalClassificationTree(HasRashomonSet, TreeClassifier, SearchArguments):
    """Classification tree with axis-parallel splits that is optimal for its objective, or says how far it may be.

    Parameters
    ----------
    objective : str
        "accuracy": share of the weight misclassified, rows weighted by ``class_weight`` where given.
        "balanced_accuracy": mean over classes of the share misclassified. "gini", "entropy", "root_gini": mean
        impurity of the leaves, weighted like accuracy; the first two are Brier score and log loss of
        ``predict_proba``. Further objectives as registered in
        ``softsurv.estimators.separable.class_objectives.CLASSIFIERS``.
    max_depth : int
        0 (a single leaf) to 10.
    max_leaves : int, optional
        No more than ``2**max_depth`` by default.
    class_weight : mapping from class to number, or "balanced", optional
        Weight of the rows of each class, 1 where a class is not named; "balanced" gives every class the same total.
        For "accuracy" and impurities, and for "weighted_accuracy", which is accuracy and requires it; refused for the
        other objectives.
    false_positive_rate : float
        For "partial_auc": the largest rate that counts, in (0, 1].
    min_samples_leaf : int
        Least rows per leaf.
    min_weight_fraction_leaf : float
        Least share of the total weight per leaf, up to 0.5, in the place of ``min_samples_leaf``. Weights of classes
        count where the objective takes them: "balanced_accuracy", and others with ``class_weight``.
    complexity : float
        Cost per leaf, in the unit of the objective: 0.01 asks a leaf to classify 1 % of the weight better.
    thresholds : int, "all", list of float, or mapping
        Where numbers may be cut: at so many quantiles of the rows; "all": between any two neighbouring values, so that
        nothing is lost; at the values of a list; or one of these for each column named.
    max_levels : int, optional
        Most levels of a category; the least frequent ones are merged into "other". None: all.
    min_share : float
        Cuts with a smaller share of the rows on either side are left out, and levels with a smaller share are merged.
    missing : {"impute", "route"}
        "impute": a missing value counts as the training mean or the most frequent level. "route": the search chooses
        a side for missing values at every split, which the printed rule says (``age <= 63 or missing``), and may
        split by whether a value is missing. Where a split met no missing value in training, they go to the side of
        more rows.
    path : bool
        Whether to find the best trees with fewer leaves too, see ``path_``.
    time_limit : float, optional
        Seconds after which the best tree so far is returned with its bound, and a `ConvergenceWarning`.
    memory_limit : float
        Bytes that a fit may take: table, codes, what the search makes of them, and its cache with the rest. A full
        cache makes the search slower, not inexact. Where the rows alone take more, a `LimitWarning` says how much.
    n_jobs : int, optional
        Threads, -1 for all cores; the tree does not depend on it.
    progress : bool
        Show a progress bar with bound and incumbent.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of `predict_proba`.
    tree_ : HardTree
        Splits in the data's units, with the share of each class in each leaf.
    label_ : ndarray (L,)
        Class of each leaf, as a place in ``classes_``.
    objective_, lower_bound_, gap_ : float
        Objective of the tree on the training rows, a lower bound for every tree, and the difference.
    status_ : Status
        Why the search ended.
    path_ : tuple of SizedTree
        Best trees with at most 1, 2, ... leaves where ``path`` asks for them, else the tree alone.
    report_ : FitReport
        How the search ended, its objective and bound, and the seconds that it took.
    binarizer_ : Binarizer
        How the raw features became the columns and cuts of the search.

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

    objective: str = "accuracy"
    max_depth: int = 4
    max_leaves: int | None = None
    _: KW_ONLY
    class_weight: Mapping[Any, float] | str | None = None
    false_positive_rate: float = 0.1

    @one_fit_at_a_time
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

        Raises
        ------
        InvalidParameterError
            An argument of the estimator is out of range, or the objective is not for so many classes.
        InvalidSurvivalDataError
            A column has the wrong length, or holds missing or infinite values where none may be.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        one_of("objective", self.objective, tuple(CLASSIFIERS))
        training = self._training(X, sample_weight, y=y)
        classes = Classes.read(y, training)
        self.classes_ = classes.names
        options = ClassOptions(self.class_weight, self.false_positive_rate)
        objective = ClassObjective(self.objective, classes, options)
        self._solve(training, objective)
        self._kept = Kept((training, objective))
        return self

    def _near_source(self) -> NearSource:
        kept = getattr(self, "_kept", Kept())
        if not kept:
            refuse_objective(self.objective, ERRORS)
            raise rows_are_gone()
        training, objective = kept
        refuse_objective(objective.name, ERRORS)  # of the fit: `set_params` may have changed the argument since
        problem, scale = error_problem(objective, training.rows, training.limits)

        def fitted(code_tree: CodeTree, report: FitReport) -> OptimalClassificationTree:
            """A copy of the estimator with another tree."""
            other = copy(self)
            label = label_costs.best_label(code_tree.sums[code_tree.leaves])
            other._take(training, objective, Solved(code_tree, label, report))
            return other

        limits, names = training.limits, tuple(training.binarizer.filler_.input_names_)
        return NearSource(problem, limits.depth, limits.leaves, scale, training.rows.sources, names, fitted)


class Kept(tuple[Any, ...]):
    """Training rows and objective of a fit; pickled, it is empty."""

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
