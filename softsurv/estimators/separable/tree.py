"""What the optimal trees for separable objectives share: reading rows, one way to fit, exports, saved state."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.blocks import column_types
from softsurv.data.canonical import column_order
from softsurv.data.encoding import read_columns
from softsurv.data.frames import as_frame, checked_features, checked_table, has_names
from softsurv.data.in_time import look_at_numbers
from softsurv.data.readers import refuse_other_rows
from softsurv.estimators.separable.limits import SearchLimits, TreeArguments
from softsurv.estimators.separable.solve import Solved
from softsurv.estimators.shared.checks import rows_for_a_leaf
from softsurv.estimators.shared.exact_tree import ExactTree, SizedTree, warn_unless_proven
from softsurv.estimators.shared.inputs import BinnedRows, binned_rows, checked_frame, checked_weight
from softsurv.estimators.shared.tags import TakesAnyTable
from softsurv.exact.memory import bytes_of_frame
from softsurv.exact.tree import CodeTree
from softsurv.trees.hard_tree import Branch, HardTree
from softsurv.trees.missing_sides import larger_sides


@dataclass(frozen=True)
class TrainingTable:
    """What a fit works on.

    Attributes
    ----------
    table : dict of str to ndarray (N,)
        Raw columns of the rows of positive weight, as `Binarizer.filled` gives them.
    rows : BinnedRows
        The same rows as bins.
    kept : (N,) int
        Their places among the rows given.
    n_given : int
        Number of rows given.
    binarizer : Binarizer
        What made the bins.
    limits : SearchLimits
    """

    table: dict[str, NDArray[Any]]
    rows: BinnedRows
    kept: IntArray
    n_given: int
    binarizer: Binarizer
    limits: SearchLimits

    def leaf_of(self, tree: HardTree) -> IntArray:
        """Leaf of each row, (N,)."""
        return tree.leaf_of(self.table, self.rows.n)


class SeparableObjective(Protocol):
    """What a tree minimises over its training rows, and what its leaves show."""

    def solve(self, rows: BinnedRows, limits: SearchLimits) -> Solved:
        """The best tree within the limits."""
        ...

    def leaf_values(
        self,
        label: NDArray[Any],  # (L,)
        leaf: IntArray,  # (N,) leaf of each training row
        weight: FloatArray,  # (N,)
    ) -> tuple[FloatArray, list[str]]:
        """Numbers that each leaf shows (L, K), with their names."""
        ...


class SeparableTree(TakesAnyTable, ExactTree, TreeArguments, BaseEstimator):
    """Base of the optimal trees for separable objectives.

    The ``fit`` of a subclass reads its arguments, builds a `SeparableObjective` and hands it to :meth:`_solve`.
    """

    max_depth: int
    max_leaves: int | None
    label_: NDArray[Any]
    leaf_weight_: FloatArray
    n_features_in_: int

    @abstractmethod
    def _leaf_text(self, k: int) -> str:
        """What leaf k answers, in words."""

    def _own_state(self) -> dict[str, Any]:
        """Fitted attributes of the subclass to save, JSON values and arrays."""
        return {}

    def _restore_own(self, state: dict[str, Any]) -> None:
        """Set what :meth:`_own_state` gave."""

    # -- fitting -------------------------------------------------------------------------------------------------
    def _training(self, X: Any, sample_weight: Any, **columns: Any) -> TrainingTable:
        """Check arguments and table, and learn the splits to choose from; rows of weight 0 are left out.

        ``columns`` are other values of the rows. Where such a column and ``X`` both have an index, they must agree.
        """
        limits = self._limits(self.max_depth, self.max_leaves)
        if isinstance(X, pd.DataFrame):
            for argument, value in ({"sample_weight": sample_weight} | columns).items():
                refuse_other_rows(X, value, argument)
        with limits.stop.reading():
            return self._read(X, sample_weight, limits)

    def _read(self, X: Any, sample_weight: Any, limits: SearchLimits) -> TrainingTable:
        """The table as the search takes it."""
        frame = checked_frame(self, X, reset=True)
        weight = checked_weight(sample_weight, len(frame))
        kept, n_given = np.flatnonzero(weight > 0), len(frame)
        if kept.size < n_given:
            frame, weight = checked_features(as_frame(frame)).iloc[kept], weight[kept]  # checked: errors name the row
        binarizer = Binarizer(self.thresholds, self.max_levels, self.min_share, self.missing)
        checked, types = checked_table(frame)
        rows_for_a_leaf(limits.min_leaf, len(frame))
        types = column_types(checked) if types is None else types
        block = read_columns(checked, types)
        table, n = binarizer.fit_filled(checked, order=column_order(checked), block=block)
        if not binarizer.columns_:
            limits = replace(limits, depth=0)
        rows = binned_rows(binarizer, table, n, weight, block)
        limits = replace(limits, room=limits.room.less(bytes_of_frame(checked, types)).beside(table, rows))
        look_at_numbers(*checked.shape)
        return TrainingTable(table, rows, kept, n_given, binarizer, limits)

    def _solve(self, training: TrainingTable, objective: SeparableObjective) -> None:
        """Find the tree and set the fitted attributes; warn where it is not proven optimal."""
        self._take(training, objective, objective.solve(training.rows, training.limits))
        warn_unless_proven(self.report_)

    def _take(self, training: TrainingTable, objective: SeparableObjective, solved: Solved) -> None:
        """Set the fitted attributes."""
        self.binarizer_, self.report_ = training.binarizer, solved.report
        self.tree_, self.label_, leaf = in_data_units(training, objective, solved.tree, solved.label)
        self.leaf_weight_ = np.asarray(np.bincount(leaf, training.rows.weight, self.tree_.n_leaves), dtype=np.float64)
        self.path_ = tuple(
            SizedTree(size.max_leaves, size.objective, in_data_units(training, objective, size.tree, size.label)[0])
            for size in solved.path
        ) or (SizedTree(self.tree_.n_leaves, self.objective_, self.tree_),)

    # -- results -------------------------------------------------------------------------------------------------
    def apply(self, X: Any) -> IntArray:
        """Leaf of each row, (n,): leaves are numbered from 0, as they are printed."""
        check_is_fitted(self, "tree_")
        frame = checked_frame(self, X)
        if not has_names(X):  # scikit-learn has counted the columns, and warned where training had names
            frame = frame.set_axis(self.binarizer_.filler_.input_names_, axis="columns")
        return self.tree_.leaf_of(*self.binarizer_.filled(frame))

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


def in_data_units(
    training: TrainingTable, objective: SeparableObjective, tree: CodeTree, label: NDArray[Any]
) -> tuple[HardTree, NDArray[Any], IntArray]:
    """A tree on bins as one in the data's units, its labels in the order of its leaves, and the leaf of each row."""
    root, order = branches(tree, training.binarizer)
    hard = HardTree.grow(training.binarizer.sources_, root)
    if training.binarizer.routes:
        hard = larger_sides(hard, training.table, training.rows.weight)
    label, leaf = np.asarray(label)[order], training.leaf_of(hard)
    return hard.with_values(*objective.leaf_values(label, leaf, training.rows.weight)), label, leaf


def branches(tree: CodeTree, binarizer: Binarizer) -> tuple[Branch | None, IntArray]:
    """A tree on bins as branches in the data's units, and for each leaf of these its place in the tree on bins (L,).

    The bin of all other levels asks for the named ones, with its answers swapped.
    """
    place = {int(node): k for k, node in enumerate(tree.leaves)}
    order: list[int] = []

    def grow(node: int) -> Branch | None:
        if tree.feature[node] < 0:
            order.append(place[node])
            return None
        rule, swapped = binarizer.rule(int(tree.feature[node]), int(tree.code[node]))
        sides = (tree.right, tree.left) if swapped else (tree.left, tree.right)
        return Branch(rule, *(grow(int(side[node])) for side in sides))

    return grow(0), np.array(order)
