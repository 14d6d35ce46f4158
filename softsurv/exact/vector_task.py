"""Several objectives per tree that have no fixed weights beforehand, such as errors and a difference between groups.

Every tree has a vector v of D objectives. Each leaf has a label and adds the objectives of that label, which are a
function of the leaf's summed statistics (paper `streed`, Definition 4.1, with addition as the combining operator). So
order is preserved (Definition 4.4). What is best among the trees is decided afterwards: by a constraint
``constraint @ v <= limit`` and a first objective to minimise (`whole_trees.constraint`), by a measure of two error
counts (`whole_trees.measures`), or not at all, where the front itself is wanted.

For any weights w, the least w . v is the optimum of an additive task, which the engine finds (`VectorSearch.best`).
A `LeafRule` names that task, and a compiled function that writes the objectives of a leaf. Where the objectives are
weighted sums of the statistics (`softsurv.exact.objectives.linear`), the task is the cheapest of L labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.task import Task


@dataclass(frozen=True)
class LeafRule:
    """How the objectives of a leaf follow from its sums.

    Attributes
    ----------
    task : Task
        Its cost is the least of w . objectives over the labels. It reads the statistics and the ``parameters``. A
        ``linear`` one reads the weighted cost of each label instead.
    leaf_points : compiled function (sums (>= K,), weights (L, D, K), out (L, D)) -> None
        Objectives of every label, the constants of a leaf apart; of an empty leaf they are 0.
    parameters : function (w (D,), weights (L, D, K)) -> (M,), optional
        Numbers that the task takes at run time.
    """

    task: Task
    leaf_points: Callable[..., Any]
    parameters: Callable[[FloatArray, FloatArray], FloatArray] | None = None


@dataclass(frozen=True)
class Objectives:
    """The objectives of a tree, and limits on them.

    Attributes
    ----------
    weights : (L, D, K)
        For linear objectives the weights of the K statistics, by label and objective; else what the rule makes of them.
    constant : (D,)
        What every leaf adds, whatever its label.
    kept : (D,) bool
        Objectives without a preferred direction, such as a signed difference: of two subtrees neither dominates the
        other unless they agree in these. The others are minimised.
    constraint, limit : (C, D), (C,)
        ``constraint @ v <= limit`` for the whole tree.
    rule : LeafRule
    size : (D,), optional
        Size of each objective, to which the tolerances of `vector_search` are relative. For linear objectives it
        follows from the statistics.
    """

    weights: FloatArray
    constant: FloatArray
    kept: BoolArray
    constraint: FloatArray
    limit: FloatArray
    rule: LeafRule
    size: FloatArray | None = None

    @property
    def n_labels(self) -> int:
        """L."""
        return self.weights.shape[0]

    @property
    def n(self) -> int:
        """D."""
        return self.weights.shape[1]

    def points(self, sums: FloatArray) -> FloatArray:
        """Objectives of leaves (G, L, D) from their sums (G, K), constants included."""
        if self.rule.task.linear:
            return np.asarray(np.einsum("ldk,gk->gld", self.weights, sums) + self.constant)
        out = np.zeros((len(sums), self.n_labels, self.n))
        plain = getattr(self.rule.leaf_points, "py_func", self.rule.leaf_points)
        for leaf, one in zip(np.ascontiguousarray(sums, dtype=float), out, strict=True):
            plain(leaf, self.weights, one)
        return out + self.constant

    def size_of(self, totals: FloatArray) -> FloatArray:
        """Size of each objective (D,), from the sums of the statistics over all rows (K,)."""
        if self.size is not None:
            return self.size
        return (np.abs(self.weights) @ np.abs(totals)).max(axis=0)

    @cached_property
    def n_limits(self) -> int:
        """C."""
        return len(self.limit)

    def with_most_leaves(self, leaves: int) -> Objectives:
        """The same with the number of leaves as the last objective, and a limit on it."""
        labels, _, k = self.weights.shape
        constraint = np.pad(self.constraint, ((0, 1), (0, 1)))
        constraint[-1, -1] = 1.0
        return replace(
            self,
            weights=np.concatenate([self.weights, np.zeros((labels, 1, k))], axis=1),
            constant=np.append(self.constant, 1.0),
            kept=np.append(self.kept, False),
            constraint=constraint,
            limit=np.append(self.limit, float(leaves)),
            size=None if self.size is None else np.append(self.size, 1.0),
        )


def objectives(
    rule: LeafRule, weights: Any, kept: Any = None, *, constant: Any = None, constraint: Any = None, limit: Any = None,
    size: Any = None,
) -> Objectives:  # fmt: skip
    """`Objectives` with defaults: all are minimised, nothing is limited, and leaves add nothing."""
    weights = np.ascontiguousarray(weights, dtype=float)
    d = weights.shape[1]
    return Objectives(
        weights,
        np.zeros(d) if constant is None else np.asarray(constant, dtype=float),
        np.zeros(d, np.bool_) if kept is None else np.asarray(kept, dtype=np.bool_),
        np.zeros((0, d)) if constraint is None else np.ascontiguousarray(constraint, dtype=float),
        np.zeros(0) if limit is None else np.asarray(limit, dtype=float),
        rule,
        size,
    )
