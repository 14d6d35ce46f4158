"""What the Pareto search asks of an objective: several numbers per tree that cannot be traded beforehand.

A *Pareto task* gives every tree a vector of D objectives, the sum over its leaves of the objectives of one label of
each leaf; a label's objectives are a function of the leaf's summed statistics (paper `streed`, Definition 4.1, with
addition as the combining operator). So order is preserved (Definition 4.4) and, a threshold on a sum being checked on
the whole tree alone, anti-monotonicity is not needed. What is best among the trees is decided afterwards: a constraint
``constraint @ v <= limit`` and a first objective to minimise (`dual`), a measure of two error counts
(`measures`), or nothing, where the front itself is wanted.

Declaring one
-------------
Where each objective of each label is a weighted sum of the statistics, the weights are the declaration:

    capacity = linear_task("capacity", weights, kept=(False, False))      # weights (L, D, K + 1)

Otherwise a compiled function writes the objectives of every label:

    @njit
    def leaf_points(sums, params, out):      # sums (K,), params (L, D, K + 1), out (L, D)
        out[0, 0] = ...

    task = ParetoTask("mine", 4, 1, 2, (False, True), leaf_points)

An objective that is *kept* has no preferred direction (a signed difference between groups): of two subtrees neither
dominates the other unless they agree in it. The others are minimised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softsurv.exact.jit import INNER
from softsurv.exact.tasks.base import content_of


@dataclass(frozen=True)
class ParetoTask:
    """Objectives of a leaf under each label.

    Attributes
    ----------
    name : str
        A Python identifier; part of the names of the compiled kernels.
    n_statistics : int
        K, the columns of the additive statistics.
    n_labels : int
        L, the labels that a leaf may take.
    n_objectives : int
        D.
    kept : tuple of bool (D,)
        Objectives without a preferred direction.
    leaf_points : compiled function (sums (K,), params (L, D, K + 1), out (L, D)) -> None, optional
        Objectives of every label; of an empty leaf they are 0. None where ``params`` are the weights of sums.
    floor : function (sums (G, K), w (D,), params) -> (G,), optional
        For each group of equal rows, what it adds at least to w . objectives of any tree. None: nothing is known
        (for linear tasks it is derived: the best label of each group).
    """

    name: str
    n_statistics: int
    n_labels: int
    n_objectives: int
    kept: tuple[bool, ...]
    leaf_points: Callable[..., Any] | None = None
    floor: Callable[..., NDArray[np.float64]] | None = None

    @property
    def linear(self) -> bool:
        """Whether the objectives are weighted sums of the statistics."""
        return self.leaf_points is None

    def digest(self) -> str:
        """Ten hex digits that change with the bytecode of the leaf function."""
        return hashlib.sha256(repr(content_of(self.leaf_points)).encode()).hexdigest()[:10]

    def points(self, sums: NDArray[np.float64], params: NDArray[np.float64]) -> NDArray[np.float64]:
        """Objectives of leaves (G, L, D) from their sums (G, K)."""
        if self.leaf_points is None:
            return np.einsum("ldk,gk->gld", params[:, :, :-1], sums) + params[:, :, -1]
        out = np.zeros((len(sums), self.n_labels, self.n_objectives))
        plain = getattr(self.leaf_points, "py_func", self.leaf_points)
        for leaf, one in zip(np.ascontiguousarray(sums, dtype=float), out, strict=True):
            plain(leaf, params, one)
        return out


def linear_task(n_labels: int, n_objectives: int, n_statistics: int, kept: tuple[bool, ...]) -> ParetoTask:
    """A task whose objectives are weighted sums; all such tasks share their compiled kernels."""
    return ParetoTask("linear", n_statistics, n_labels, n_objectives, kept)


def general_leaf(leaf_points: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The kernels ``leaf_cost`` and ``price`` of a task with a leaf function of its own."""
    options = INNER | {"cache": False}

    @njit(**options)
    def leaf_cost(sums, label, point, weights):
        """Weighted cost of one label of a leaf whose points are known."""
        total = 0.0
        for d in range(weights.w.shape[0]):
            total += weights.w[d] * point[label, d]
        return total

    @njit(**options)
    def price(problem, weights, scratch, sums, n, work, out):
        """Least weighted cost over the labels of each of n leaves, whose sums are the columns of `sums`."""
        column, point = scratch.sums[0], scratch.label[0]
        for i in range(n):
            for k in range(column.shape[0]):
                column[k] = sums[k, i]
            leaf_points(column, problem.params, point)
            best = leaf_cost(column, 0, point, weights)
            for label in range(1, problem.n_labels):
                best = min(best, leaf_cost(column, label, point, weights))
            out[i] = best

    return leaf_cost, price
