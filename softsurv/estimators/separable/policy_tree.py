"""What the policy trees share: rewards of the treatments, treatment of a leaf, and the share of rows given each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.limits import SearchArguments, SearchLimits
from softsurv.estimators.separable.solve import Solved, solve_task
from softsurv.estimators.separable.tree import SeparableTree, TrainingTable
from softsurv.estimators.shared.inputs import BinnedRows, checked_matrix, names_for_state, names_from_state
from softsurv.exact.objectives import label_costs
from softsurv.exact.objectives.policy import lost_rewards


@dataclass(frozen=True)
class Rewards:
    """Mean score of the treatments that a tree chooses, to be made as large as can be.

    Attributes
    ----------
    treatments : ndarray (K,)
    scores : (N, K)
        Score of every treatment for every training row, higher is better.
    """

    treatments: NDArray[Any]
    scores: FloatArray

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        total = float(rows.weight.sum())
        return solve_task(
            label_costs.TASK,
            lost_rewards(self.scores, rows.weight),
            rows,
            limits,
            label_of=label_costs.best_label,
            scale=total,
            shift=-float(rows.weight @ self.scores.max(axis=1)) / total,
        )

    def leaf_values(self, label: NDArray[Any], leaf: IntArray, weight: FloatArray) -> tuple[FloatArray, list[str]]:
        """Mean score of each treatment in each leaf, (L, K)."""
        total = np.bincount(leaf, weight, len(label))
        columns = [np.bincount(leaf, weight * column, len(label)) / total for column in self.scores.T]
        return np.stack(columns, axis=1), [f"score of {name}" for name in self.treatments]


class PolicyTree(SeparableTree, SearchArguments):
    """Base of the policy trees; a label is a place in ``treatments_``."""

    treatments_: NDArray[Any]

    @property
    def share_(self) -> dict[Any, float]:
        """Share of the training weight that each treatment is given."""
        given = np.bincount(self.label_, self.leaf_weight_, len(self.treatments_)) / self.leaf_weight_.sum()
        return dict(zip(self.treatments_.tolist(), given.tolist(), strict=True))

    def _leaf_text(self, k: int) -> str:
        answer = int(self.label_[k])
        return f"{self.treatments_[answer]}, score {self.tree_.value[k, answer]:.4g}"

    def predict(self, X: Any) -> NDArray[Any]:
        """Treatment for each row, (n,)."""
        leaf = self.apply(X)
        return np.asarray(self.treatments_[self.label_[leaf]])

    def predict_scores(self, X: Any) -> FloatArray:
        """Mean training score of every treatment in each row's leaf, (n, K)."""
        leaf = self.apply(X)
        return np.asarray(self.tree_.value[leaf])

    def policy_value(self, X: Any, scores: Any) -> float:
        """Mean score (n, K) of the treatments that the tree chooses: its value on held-out rows.

        Raises
        ------
        InvalidSurvivalDataError
            If the scores are not one row for each row of X, one column for each treatment.
        """
        chosen = self.label_[self.apply(X)]
        table = checked_matrix("scores", scores, self.treatments_)
        if table.shape != (wanted := (len(chosen), len(self.treatments_))):
            raise InvalidSurvivalDataError(
                f"scores must have a row for each row of X and a column for each treatment, {wanted}, got {table.shape}"
            )
        return mean_score(Rewards(self.treatments_, table), chosen, np.ones(len(chosen)))

    def _held_out(self, X: Any, sample_weight: Any, **columns: Any) -> tuple[TrainingTable, IntArray]:
        """Rows to value the policy on, read as a fit reads them, and the treatment chosen for each (N,)."""
        if all(columns.get(name) is None for name in ("treatment", "scores")):
            raise InvalidParameterError(
                "treatment must say which treatment each row was given, got None; in cross-validation scikit-learn "
                "passes it on where enable_metadata_routing is set, after set_fit_request and set_score_request"
            )
        reader = clone(self).set_params(
            max_depth=0, max_leaves=None, thresholds=1, min_samples_leaf=1, min_weight_fraction_leaf=0.0
        )
        held_out = reader._training(X, sample_weight, **columns)
        return held_out, self.label_[self.apply(X)[held_out.kept]]

    def _own_state(self) -> dict[str, Any]:
        return {"treatments": names_for_state(self.treatments_), "kind": self.treatments_.dtype.str}

    def _restore_own(self, state: dict[str, Any]) -> None:
        self.treatments_ = names_from_state(state["treatments"], state["kind"])


def mean_score(rewards: Rewards, chosen: IntArray, weight: FloatArray) -> float:
    """Mean score, by weight, of the treatments that a tree chooses for held-out rows."""
    return float(np.average(rewards.scores[np.arange(len(chosen)), chosen], weights=weight))
