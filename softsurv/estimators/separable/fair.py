"""OptimalFairClassificationTree: the most accurate two-class tree under a group-fairness constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.classifier import Classes, TreeClassifier
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.measures import least_leaf
from softsurv.estimators.separable.solve import Solved
from softsurv.estimators.separable.tree import TrainingTable
from softsurv.estimators.shared.checks import one_of, share
from softsurv.estimators.shared.inputs import BinnedRows, coded, names_for_state, names_from_state, plain
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.shared.progress import search_bar
from softsurv.exact.objectives.fairness import KINDS, difference, fair_search
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import FitReport

DIGITS = 53
"""Binary digits of a double."""

SMALLEST_UNIT = 1e-9
"""Share of all weights that is above the rounding of their sum."""


@dataclass(eq=False, repr=False)
class OptimalFairClassificationTree(TreeClassifier):
    """Two-class tree with the fewest errors whose share called positive differs little between groups.

    Parameters
    ----------
    constraint : {"demographic_parity", "equality_of_opportunity"}
        The share of all rows, or of the rows of the positive class, that is called positive, by group. The positive
        class is the second of ``classes_``.
    tolerance : float
        Largest difference between the shares of any two groups, in [0, 1], on the training rows.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, complexity, thresholds, max_levels, min_share,
    missing, time_limit, memory_limit, n_jobs, progress
        As in `OptimalClassificationTree` with the objective "accuracy".

    Attributes
    ----------
    difference_ : float
        Difference between groups on the training rows.
    groups_ : ndarray (G,)
        The groups.
    objective_, lower_bound_, gap_, status_, tree_, label_, classes_, report_, binarizer_
        As in `OptimalClassificationTree`.

    Notes
    -----
    The constraint is on the whole tree, not on every subtree. The group need not be among the features: leave it out
    of ``X`` if the tree must not ask for it. The search and its proof are in `softsurv.exact.whole_trees.constraint`.

    References
    ----------
    Van der Linden et al. (2023), paper `streed`, section 4.4 and appendix F.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv.estimators.separable.fair import OptimalFairClassificationTree
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> tree = OptimalFairClassificationTree(max_depth=2, tolerance=0.0).fit(X, X[:, 0] | X[:, 1], group=X[:, 0])
    >>> tree.objective_, tree.difference_
    (0.25, 0.0)
    """

    constraint: str = "demographic_parity"
    tolerance: float = 0.01
    max_depth: int = 3
    max_leaves: int | None = None

    @one_fit_at_a_time
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, group: Any = None
    ) -> OptimalFairClassificationTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            May hold categories (in a frame) and missing values.
        y : (n,)
            Two classes, the positive one second in sorted order.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.
        group : (n,)
            The sensitive group of each row: numbers or text, two or more groups.

        Raises
        ------
        InvalidParameterError
            An argument of the estimator is out of range, or there are not two classes and two groups or more.
        InvalidSurvivalDataError
            A column has the wrong length, or holds missing or infinite values where none may be.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        one_of("constraint", self.constraint, KINDS)
        share("tolerance", self.tolerance)
        training = self._training(X, sample_weight, y=y, group=group)
        classes = Classes.read(y, training)
        if classes.k != 2:
            raise InvalidParameterError(f"y must have two classes for {self.constraint!r}, got {classes.k}")
        groups, group_code = coded("group", checked_group(group, training))
        if len(groups) < 2:
            raise InvalidParameterError("group must have at least two values, got one; take OptimalClassificationTree")
        if self.constraint == "equality_of_opportunity":
            _need_positives(classes, groups, group_code)
        self.classes_, self.groups_ = classes.names, groups
        self._solve(training, FairAccuracy(classes, group_code, self.constraint, float(self.tolerance)))
        return self

    @property
    def difference_(self) -> float:
        """Largest difference between two groups on the training rows."""
        return float(self.report_.details["difference"])

    def _own_state(self) -> dict[str, Any]:
        groups = {"groups": names_for_state(self.groups_), "groups_kind": self.groups_.dtype.str}
        return {**super()._own_state(), **groups}

    def _restore_own(self, state: dict[str, Any]) -> None:
        super()._restore_own(state)
        self.groups_ = names_from_state(state["groups"], state["groups_kind"])


@dataclass(frozen=True)
class FairAccuracy:
    """Errors of two-class trees whose share called positive differs by at most ``tolerance`` between groups.

    Attributes
    ----------
    classes : Classes
    group : (N,) int
    kind : str
        The constraint, one of ``softsurv.exact.objectives.fairness.KINDS``.
    tolerance : float
    """

    classes: Classes
    group: IntArray
    kind: str
    tolerance: float

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        total = float(rows.weight.sum())
        least, size = least_leaf(rows, limits)
        kind, label = self.kind, self.classes.label
        search = fair_search(
            rows.codes, rows.n_codes, rows.nominal, label, self.group, kind, self.tolerance, limits.depth,  # type: ignore[arg-type]
            weight=rows.weight, complexity=limits.complexity * total, leaves=limits.leaves,
            min_leaf=least, size=size, memory_limit=limits.room.left, n_jobs=limits.n_jobs, stop=limits.stop,
        )  # fmt: skip
        limits.room.check(search.held)
        unit = common_unit(rows.weight) if limits.complexity == 0 else 0.0
        with limits.stop as stop, search_bar(limits.progress) as bar:
            state = constrained_optimum(search, stop, unit=unit, progress=bar)
        gap = difference(state.tree.label_of(rows.codes, rows.nominal), label, self.group, kind, rows.weight)  # type: ignore[arg-type]
        details = {"multipliers": state.multipliers.tolist(), "base_cases": search.base_cases, "difference": gap}
        report = FitReport(
            state.status, state.value / total, state.bound / total, stop.seconds,
            tuple(value / total for value in state.trace), details,
        )  # fmt: skip
        return Solved(state.tree.tree, state.tree.label, report)

    def leaf_values(self, label: NDArray[Any], leaf: IntArray, weight: FloatArray) -> tuple[FloatArray, list[str]]:
        """Share of each class in each leaf, (L, 2)."""
        return self.classes.leaf_values(label, leaf, weight)


def _need_positives(classes: Classes, groups: NDArray[Any], group: IntArray) -> None:
    """Refuse a group, by its name, without rows of the positive class; group is the code of each row (N,)."""
    count = np.bincount(group[classes.label == 1], minlength=len(groups))
    if not count.all():
        raise InvalidParameterError(
            f"group {groups.tolist()[int(count.argmin())]!r} must have rows of the positive class "
            f"{classes.names.tolist()[1]!r} for 'equality_of_opportunity', got none; merge groups or choose another "
            "constraint"
        )


def common_unit(weight: FloatArray) -> float:
    """The largest number of which all weights (N,) are whole multiples; 0 where that is so small that sums round it.

    Any two costs that differ then differ by this number at least. In other units of weight it is another number, and
    the search is the same.
    """
    mantissa, exponent = np.frexp(np.unique(weight))
    least = int(exponent.min())
    if int(exponent.max()) - least > DIGITS:
        return 0.0
    whole = [int(m * 2**DIGITS) << int(e) - least for m, e in zip(mantissa.tolist(), exponent, strict=True)]
    unit = math.ldexp(math.gcd(*whole), least - DIGITS)
    return unit if unit > SMALLEST_UNIT * float(weight.sum()) else 0.0


def checked_group(group: Any, training: TrainingTable) -> NDArray[Any]:
    """The group of each training row (N,)."""
    if group is None:
        raise InvalidParameterError("group must say which group each row belongs to, got None")
    values = np.asarray(plain("group", group))
    if values.shape != (training.n_given,):
        raise InvalidSurvivalDataError(
            f"group must have one entry for each row of X, ({training.n_given},), got {values.shape}"
        )
    missing = pd.isna(values)
    if missing.any():
        row = int(missing.argmax())
        raise InvalidSurvivalDataError(f"group must not be missing, got {values[row]} at row {row}")
    return values[training.kept]
