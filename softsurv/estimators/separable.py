"""What the optimal trees beside the survival trees share: limits, the fit around a solver, exports, saved state."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from softsurv.data.binarize import DEFAULT_THRESHOLDS, Binarizer
from softsurv.errors import InvalidParameterError
from softsurv.estimators.checks import n_threads, search_limits
from softsurv.estimators.coded import branches, checked_frame, checked_weight, coded_rows
from softsurv.estimators.progress import SearchBar
from softsurv.estimators.searched import SearchedTree
from softsurv.estimators.solvers import CodedRows, Limits, SizedTree, Solved
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status
from softsurv.trees.hard_tree import HardTree

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """Rows of positive weight: as completed columns, as codes, with their places among the rows given."""

    table: dict[str, NDArray[Any]]
    rows: CodedRows
    kept: NDArray[np.int64]
    n_given: int


class SeparableTree(SearchedTree, BaseEstimator):
    """Base of the optimal trees for separable objectives; subclasses say what is minimised and what a leaf answers."""

    label_: NDArray[Any]
    leaf_weight_: FloatArray
    n_features_in_: int

    def __init__(
        self,
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
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.complexity = complexity
        self.thresholds = thresholds
        self.max_levels = max_levels
        self.min_share = min_share
        self.path = path
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.progress = progress

    # -- hooks ---------------------------------------------------------------------------------------------------
    @abstractmethod
    def _leaf_values(self, label: NDArray[Any], leaf: NDArray[np.int64], weight: FloatArray) -> tuple[Any, list[str]]:
        """Numbers that each leaf shows (L, K) with their names, from the training rows' leaves (N,)."""

    @abstractmethod
    def _leaf_text(self, k: int) -> str:
        """What leaf k answers, in words."""

    def _own_state(self) -> dict[str, Any]:
        """Fitted attributes of the subclass to save, JSON values and arrays."""
        return {}

    def _restore_own(self, state: dict[str, Any]) -> None:
        """Set what :meth:`_own_state` gave."""

    # -- fitting -------------------------------------------------------------------------------------------------
    def _training(self, X: Any, sample_weight: Any) -> Training:
        """Check the table and learn the splits to choose from; rows of weight 0 are left out."""
        search_limits(self)
        frame = checked_frame(self, X, reset=True)
        weight = checked_weight(sample_weight, len(frame))
        kept, n_given = np.flatnonzero(weight > 0), len(frame)
        if kept.size < n_given:
            frame, weight = frame.iloc[kept], weight[kept]
        if self.min_samples_leaf > len(frame):
            raise InvalidParameterError(
                f"min_samples_leaf must be at most the number of rows, {len(frame)}, got {self.min_samples_leaf}"
            )
        self.binarizer_ = Binarizer(self.thresholds, self.max_levels, self.min_share).fit(frame)
        table, n = self.binarizer_.filled(frame)
        return Training(table, coded_rows(self.binarizer_, table, n, weight), kept, n_given)

    def _limits(self) -> Limits:
        """The limits of this fit."""
        return Limits(
            self.max_depth if self.binarizer_.columns_ else 0,
            self.max_leaves,
            self.min_samples_leaf,
            float(self.min_weight_fraction_leaf),
            float(self.complexity),
            math.inf if self.time_limit is None else float(self.time_limit),
            n_threads(self.n_jobs),
            self.memory_limit,
            SearchBar() if self.progress else None,
            self.path,
        )

    def _keep(self, training: Training, solved: Solved, limits: Limits) -> None:
        """Set the fitted attributes from what a solver found."""
        if isinstance(limits.progress, SearchBar):
            limits.progress.close()
        self.report_ = solved.report
        self.tree_, self.label_ = self._readable(training, solved.tree, solved.label)
        leaf = self.tree_.leaf_of(training.table, training.rows.n)
        self.leaf_weight_ = np.asarray(np.bincount(leaf, training.rows.weight, self.tree_.n_leaves), dtype=np.float64)
        self.path_ = tuple(
            SizedTree(size.max_leaves, size.objective, self._readable(training, size.tree, size.label)[0])
            for size in solved.path
        ) or (SizedTree(self.tree_.n_leaves, self.objective_, self.tree_),)
        for name, value in solved.attributes.items():
            setattr(self, name, value)
        if self.status_ not in (Status.OPTIMAL, Status.CONDITIONALLY_OPTIMAL):
            warn_unproven(self.report_)

    def _readable(self, training: Training, tree: CodeTree, label: NDArray[Any]) -> tuple[HardTree, NDArray[Any]]:
        """A tree on codes in the data's units, with its labels in the order of its leaves."""
        root, order = branches(tree, self.binarizer_)
        hard = HardTree.grow(self.binarizer_.sources_, root)
        label = np.asarray(label)[order]
        leaf = hard.leaf_of(training.table, training.rows.n)
        value, names = self._leaf_values(label, leaf, training.rows.weight)
        return replace(hard, value=value, value_names=tuple(names)), label

    # -- results -------------------------------------------------------------------------------------------------
    def apply(self, X: Any) -> NDArray[np.int64]:
        """Leaf of each row, (n,): leaves are numbered from the left, from 0."""
        check_is_fitted(self, "tree_")
        return self.tree_.leaf_of(*self.binarizer_.filled(checked_frame(self, X)))

    def decision_path(self, X: Any) -> Any:
        """Nodes that each row passes, as a sparse matrix of zeros and ones (n, nodes)."""
        from scipy.sparse import csr_matrix

        leaf = self.apply(X)
        passed = np.zeros((self.tree_.n_leaves, self.tree_.n_nodes), dtype=np.int8)
        for k in range(self.tree_.n_leaves):
            passed[k, [node for node, _ in self.tree_.path(k)]] = 1
            passed[k, np.flatnonzero(self.tree_.leaf == k)] = 1
        return csr_matrix(passed[leaf])

    # -- reading the tree ----------------------------------------------------------------------------------------
    def leaf_lines(self) -> list[str]:
        """What each leaf answers, and the weight of the training rows in it."""
        check_is_fitted(self, "tree_")
        return [f"{self._leaf_text(k)} (n = {self.leaf_weight_[k]:g})" for k in range(self.tree_.n_leaves)]

    def export_text(self) -> str:
        """The tree as text: rules in the data's own units, and what each leaf answers."""
        return self.tree_.export_text(self.leaf_lines())

    def export_dot(self) -> str:
        """The tree in Graphviz's language."""
        return self.tree_.export_dot(self.leaf_lines())

    def export_python(self, name: str = "leaf_of") -> str:
        """Source of a plain function that takes one row as a mapping and returns its leaf."""
        check_is_fitted(self, "tree_")
        return self.tree_.to_python(name)

    def to_dict(self) -> dict[str, Any]:
        """Tree, labels and report as plain JSON values."""
        check_is_fitted(self, "tree_")
        return {"tree": self.tree_.to_dict(), "label": self.label_.tolist(), "report": self.report_.to_dict()}

    # -- saving --------------------------------------------------------------------------------------------------
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a folder: tensors and JSON, no code and no training rows; see ``load_model``."""
        from softsurv.estimators.saved import save_model

        save_model(self, path)

    def _state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        meta = {
            **self._search_state(),
            "label": self.label_.tolist(),
            "own": self._own_state(),
        }
        return {"leaf_weight": self.leaf_weight_}, meta

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        self._restore_search(meta)
        self.label_ = np.array(meta["label"])
        self.leaf_weight_ = arrays["leaf_weight"]
        self._restore_own(meta["own"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def warn_unproven(report: FitReport) -> None:
    """Say that a tree is not proven optimal, and what to do."""
    warnings.warn(
        f"the search ended at its {str(report.status).replace('_', ' ')} with objective {report.objective:.6g} "
        f"and lower bound {report.lower_bound:.6g}; raise time_limit, or lower max_depth or thresholds",
        ConvergenceWarning,
        stacklevel=4,
    )
