"""The trees within a given distance of the optimum: counted, listed, and the best of them without some features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.rashomon.costs import IMPOSSIBLE
from softsurv.exact.rashomon.divisions import Divisions
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.rashomon.table import TreeTable
from softsurv.exact.rashomon.trees import Subtree, Trees
from softsurv.exact.tree import LEAF, CodeTree, Solution, TreeBuilder
from softsurv.results import Status
from softsurv.stopping import StopSignal

EVERY_TREE = IMPOSSIBLE // 2
"""No tree that is allowed costs so many units, and one with a leaf that is not allowed costs more."""


@dataclass(frozen=True)
class NearTree:
    """A tree with its objective.

    Attributes
    ----------
    objective : float
    gains : (P,)
        By how much the splits of each feature lower the costs of leaves; 0 also for a split that only prepares others.
    asked : (P,) bool
        Features that the tree asks.
    part : Subtree
        What it looks like; `NearOptimal.tree` makes the tree.
    """

    objective: float
    gains: FloatArray
    asked: BoolArray
    part: Subtree


class NearOptimal:
    """All trees within limits whose objective is at most a threshold.

    Parameters
    ----------
    problem : SearchProblem
    depth, leaves : int
        Limits of the trees.
    memory_limit : float
        Bytes, of the search's cache and of the table of trees together.
    with_idle : bool
        Whether trees count in which a split between two leaves lowers no cost.
    columns : (P,), optional
        Raw column of each feature: splits of one raw column that divide the rows of a node alike are one.

    Attributes
    ----------
    best : Solution
        The optimum.
    status : Status
        OPTIMAL where every tree within the threshold is found, else why some are not.
    n_by_leaves : list of int
        Trees found with 1, 2, ... leaves.
    """

    def __init__(
        self,
        problem: SearchProblem,
        depth: int,
        leaves: int | None,
        memory_limit: float = 1e9,
        with_idle: bool = False,
        columns: Sequence[Any] = (),
    ) -> None:
        self.problem, self.depth, self.memory_limit, self.with_idle = problem, depth, memory_limit, with_idle
        self.leaves, self.columns = min(leaves or 1 << depth, 1 << depth), columns
        # rows that cost the same under every label may fill a leaf, so they are not cancelled
        self.search = problem.search(0.5 * memory_limit, Bounds(cancel=False))

    def solve(self, stop: StopSignal) -> Solution:
        """Find the optimum."""
        self.best = self.search.solve(self.depth, self.leaves, stop=stop)
        return self.best

    def find(self, threshold: float, stop: StopSignal) -> Status:
        """Find all trees with an objective of at most ``threshold``, to within the tolerance of the search.

        None is sought where the search for the optimum was cut off: its time was that of the trees.
        """
        self.status, self.n_by_leaves = self.best.report.status, [0] * self.leaves
        if self.status != Status.OPTIMAL:
            return self.status
        self.divisions = Divisions.of(self.problem, self.search, self.depth, self.with_idle, self.columns)
        cost = threshold - self.search.constant + self.search.problem.tolerance
        most = self.divisions.in_units(min(cost, EVERY_TREE * self.divisions.unit))
        first = self.divisions.split_of(int(self.best.tree.feature[0]), int(self.best.tree.code[0]))
        room = 0.5 * self.memory_limit
        self.table = TreeTable(self.divisions, self.depth, self.leaves, most, stop, room, first)
        self.status = stop.run(self.table.fill, self.search.control[STOP:])
        self.n_by_leaves = self.table.count()
        return self.status

    def __iter__(self) -> Iterator[NearTree]:
        """The trees found, the best first."""
        if self.best.report.status != Status.OPTIMAL:
            return
        unit, constant = self.divisions.unit, self.search.constant
        feature, n_features = self.divisions.feature.tolist(), self.problem.codes.shape[1]
        for cost, part in Trees(self.table):
            gains, asked = [0] * n_features, [False] * n_features
            for split, gain in part.gains():
                gains[feature[split]] += gain
                asked[feature[split]] = True
            yield NearTree(cost * unit + constant, np.array(gains) * unit, np.array(asked), part)

    def without(self, features: list[int], stop: StopSignal) -> Solution:
        """The best tree that asks for none of some features."""
        search = self.problem.without(features).search(0.5 * self.memory_limit)
        return search.solve(self.depth, self.leaves, stop=stop)

    def tree(self, near: NearTree) -> CodeTree:
        """A listed tree with the sums of its nodes."""
        builder, divisions, sums = TreeBuilder(), self.divisions, self.search.exact_sums

        def grow(part: Subtree, rows: IntArray) -> int:
            """Add a part to the builder and return its node."""
            total = sums[rows].sum(axis=0)
            if part.split == LEAF or part.left is None or part.right is None:
                return builder.add(total)
            left = divisions.goes_left[rows, part.split]
            node = builder.add(total, int(divisions.feature[part.split]), int(divisions.code[part.split]))
            builder.connect(node, grow(part.left, rows[left]), grow(part.right, rows[~left]))
            return node

        grow(near.part, np.arange(len(sums)))
        return builder.tree()
