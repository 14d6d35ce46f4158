"""What the optimal classification trees share: classes of the training rows, class and shares of a leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.separable.tree import SeparableTree, TrainingTable
from softsurv.estimators.shared.inputs import coded, names_for_state, names_from_state, plain

PLAIN = "biuU"
"""Kinds of arrays whose values are classes as they are: booleans, whole numbers, text; none can be missing."""


@dataclass(frozen=True)
class Classes:
    """Classes of the training rows.

    Attributes
    ----------
    names : ndarray (K,)
        Sorted.
    label : (N,) int
        Class of each row, as a place in ``names``.
    """

    names: NDArray[Any]
    label: IntArray

    @classmethod
    def read(cls, y: Any, training: TrainingTable) -> Classes:
        """The classes of the rows that are kept, checked."""
        return cls(*coded("y", _checked(y, training.n_given)[training.kept]))

    @property
    def k(self) -> int:
        """K."""
        return len(self.names)

    def leaf_values(self, label: NDArray[Any], leaf: IntArray, weight: FloatArray) -> tuple[FloatArray, list[str]]:
        """Share of each class in each leaf, (L, K)."""
        total = np.bincount(leaf * self.k + self.label, weight, len(label) * self.k).reshape(-1, self.k)
        return total / total.sum(axis=1, keepdims=True), [f"share of {name}" for name in self.names]


class TreeClassifier(ClassifierMixin, SeparableTree):
    """Base of the classification trees; a label is a place in ``classes_``."""

    classes_: NDArray[Any]

    def _leaf_text(self, k: int) -> str:
        answer = int(self.label_[k])
        return f"{self.classes_[answer]}, share {self.tree_.value[k, answer]:.3g}"

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

    def _own_state(self) -> dict[str, Any]:
        return {"classes": names_for_state(self.classes_), "kind": self.classes_.dtype.str}

    def _restore_own(self, state: dict[str, Any]) -> None:
        self.classes_ = names_from_state(state["classes"], state["kind"])


def _checked(y: Any, n: int) -> NDArray[Any]:
    """Classes (N,) as given."""
    if y is None:
        raise InvalidSurvivalDataError("requires y to be passed, but the target y is None")
    labels = y.to_numpy() if isinstance(y, pd.Series) else y
    if not (type(labels) is np.ndarray and labels.ndim == 1 and labels.dtype.kind in PLAIN):
        labels = plain("y", y)
        _refuse_missing(np.asarray(labels))
        labels = column_or_1d(
            check_array(labels, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0), warn=True
        )
        try:
            check_classification_targets(labels)
        except (TypeError, ValueError):
            if labels.dtype.kind != "O":
                raise
            first = coded("y", labels)[0][0]  # it names the kinds that have no order
            raise InvalidSurvivalDataError(
                f"Unknown label type: y must be numbers or text, got objects such as {first!r}; give them a type, as "
                "in y.astype(int)"  # scikit-learn's checks ask for the first three words
            ) from None
    if len(labels) != n:
        raise InvalidSurvivalDataError(f"y must have one class for each of the {n} rows of X, got {len(labels)}")
    return np.asarray(labels)


def _refuse_missing(labels: NDArray[Any]) -> None:
    """Raise where a class is missing; scikit-learn sees a missing number, and not what is missing among objects."""
    missing = np.argwhere(pd.isna(labels)) if labels.dtype.kind in "OmM" and labels.ndim else np.zeros((0, 1))
    if missing.size:
        first = tuple(missing[0])
        raise InvalidSurvivalDataError(f"y must be known, got {labels[first]} at row {first[0]}; leave out such rows")
