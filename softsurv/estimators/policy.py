"""OptimalPolicyTree: which treatment for whom, as the tree with the best estimated mean outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.checks import one_of
from softsurv.estimators.coded import checked_target, checked_treatment
from softsurv.estimators.separable import SeparableTree, Training
from softsurv.estimators.solvers import Limits, Solved, solve_task
from softsurv.exact.objectives import label_costs
from softsurv.exact.objectives.policy import METHODS, lost_rewards, treatment_scores

FloatArray = NDArray[np.float64]


class OptimalPolicyTree(SeparableTree):
    """Prescriptive tree: every leaf names one treatment, and the mean score of the treatments chosen is the largest.

    Parameters
    ----------
    method : {"doubly_robust", "direct", "ips"}
        How treatments are scored from observed outcomes, see `softsurv.exact.objectives.policy.treatment_scores`. Not
        used where ``fit`` is given scores.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, path,
    time_limit, memory_limit, n_jobs, progress
        As in `OptimalClassificationTree`.
    complexity : float
        Mean score that a further leaf has to add.

    Attributes
    ----------
    treatments_ : ndarray (K,)
    tree_ : HardTree
        Splits in the data's units, with the mean score of each treatment in each leaf.
    label_ : ndarray (L,)
        Treatment of each leaf, as a place in ``treatments_``.
    objective_, lower_bound_, gap_ : float
        Minus the mean score on the training rows (plus the cost of the leaves), what no tree can fall below, and the
        difference.
    status_, path_, report_, binarizer_
        As in `OptimalClassificationTree`.

    References
    ----------
    Van der Linden et al. (2023), paper `streed`, section 4.4. Dudik et al. (2011), Doubly robust policy evaluation
    and learning.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv import OptimalPolicyTree
    >>> X = np.arange(8.0)[:, None]
    >>> scores = np.where(X < 4, [[1.0, 0.0]], [[0.0, 1.0]])
    >>> OptimalPolicyTree(max_depth=1).fit(X, scores=scores).predict([[1.0], [6.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        method: str = "doubly_robust",
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
        self.method = method

    # -- fitting -------------------------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        treatment: Any = None,
        propensity: Any = None,
        predicted: Any = None,
        scores: Any = None,
        sample_weight: Any = None,
    ) -> OptimalPolicyTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            May hold categories (in a frame) and missing values.
        y : (n,)
            Observed outcome, higher is better.
        treatment : (n,)
            The treatment given: numbers or text.
        propensity : (n,)
            Probability with which that treatment was given, in (0, 1]; for "ips" and "doubly_robust".
        predicted : (n, K)
            Outcome of every treatment as a model of one's own predicts it, treatments in sorted order; for "direct"
            and "doubly_robust". A model fitted to the same rows should predict them by cross-fitting.
        scores : (n, K), optional
            Scores of one's own in the place of the four above, higher is better.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        one_of("method", self.method, METHODS)
        training = self._training(X, sample_weight)
        if scores is None:
            table = self._scores_of(training, y, treatment, propensity, predicted)
        else:
            table = _table("scores", scores, training)
            self.treatments_ = np.arange(table.shape[1])
        limits = self._limits()
        self._scores = table
        solved = self._solve(training, table, limits)
        self._keep(training, solved, limits)
        del self._scores
        return self

    def _solve(self, training: Training, table: FloatArray, limits: Limits) -> Solved:
        """The best tree for a table of scores (N, K)."""
        weight = training.rows.weight
        total = float(weight.sum())
        return solve_task(
            label_costs.TASK,
            lost_rewards(table, weight),
            training.rows,
            limits,
            label_of=label_costs.best_label,
            scale=total,
            shift=-float(weight @ table.max(axis=1)) / total,
        )

    def _scores_of(self, training: Training, y: Any, treatment: Any, propensity: Any, predicted: Any) -> FloatArray:
        given = checked_treatment(treatment, training.n_given)
        self.treatments_, codes = np.unique(given, return_inverse=True)
        kept, k = training.kept, len(self.treatments_)
        chance = None if propensity is None else checked_target(propensity, training.n_given, "propensity")[kept]
        if chance is not None and not ((chance > 0) & (chance <= 1)).all():
            row = int(np.flatnonzero(~((chance > 0) & (chance <= 1)))[0])
            raise InvalidSurvivalDataError(
                f"propensity must be in (0, 1], got {chance[row]:g} at row {kept[row]}; leave out rows whose treatment "
                "could not be given"
            )
        table = None if predicted is None else _table("predicted", predicted, training)
        if table is not None and table.shape[1] != k:
            raise InvalidSurvivalDataError(
                f"predicted must have one column for each of the {k} treatments, got {table.shape[1]}"
            )
        outcome = checked_target(y, training.n_given)[kept]
        return treatment_scores(self.method, outcome, codes[kept], k, chance, table)

    def _leaf_values(self, label: NDArray[Any], leaf: NDArray[np.int64], weight: FloatArray) -> tuple[Any, list[str]]:
        total = np.bincount(leaf, weight, len(label))
        columns = [np.bincount(leaf, weight * column, len(label)) / total for column in self._scores.T]
        return np.stack(columns, axis=1), [f"score of {name}" for name in self.treatments_]

    def _leaf_text(self, k: int) -> str:
        answer = int(self.label_[k])
        return f"{self.treatments_[answer]}, score {self.tree_.value[k, answer]:.4g}"

    # -- predictions ---------------------------------------------------------------------------------------------
    def predict(self, X: Any) -> NDArray[Any]:
        """Treatment for each row, (n,)."""
        leaf = self.apply(X)
        return np.asarray(self.treatments_[self.label_[leaf]])

    def predict_scores(self, X: Any) -> FloatArray:
        """Mean training score of every treatment in each row's leaf, (n, K)."""
        leaf = self.apply(X)
        return np.asarray(self.tree_.value[leaf])

    def policy_value(self, X: Any, scores: Any) -> float:
        """Mean score (n, K) of the treatments that the tree chooses: its value on held-out rows."""
        chosen = self.label_[self.apply(X)]
        table = check_array(scores, dtype=np.float64, input_name="scores")
        return float(table[np.arange(len(chosen)), chosen].mean())

    # -- saving --------------------------------------------------------------------------------------------------
    def _own_state(self) -> dict[str, Any]:
        return {"treatments": self.treatments_.tolist(), "kind": self.treatments_.dtype.str}

    def _restore_own(self, state: dict[str, Any]) -> None:
        kind = state["kind"]
        self.treatments_ = np.array(state["treatments"], dtype=object if kind == "|O" else kind)


def _table(name: str, values: Any, training: Training) -> FloatArray:
    """A matrix (N, K) with one row for each row of X, rows of weight 0 left out."""
    table = check_array(values, dtype=np.float64, input_name=name)
    if len(table) != training.n_given:
        raise InvalidSurvivalDataError(f"{name} must have {training.n_given} rows as X has, got {len(table)}")
    if table.shape[1] < 2:
        raise InvalidSurvivalDataError(f"{name} must have at least two columns, one for each treatment, got 1")
    return np.asarray(table[training.kept])
