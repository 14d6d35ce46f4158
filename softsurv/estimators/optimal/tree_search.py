"""What every search for an optimal survival tree offers, whatever its objective."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.cores import n_threads
from softsurv.estimators.optimal.parameters import AUTO_SHRINKAGE, OptimalParameters, least_rows
from softsurv.estimators.optimal.rows import Rows, baseline_of, exposure
from softsurv.estimators.optimal.shrinkage import node_rows, with_risk
from softsurv.estimators.shared.cause_weights import cause_weights
from softsurv.estimators.shared.exact_tree import SizedTree
from softsurv.exact.memory import Room
from softsurv.exact.objectives import relative_risk
from softsurv.exact.tree import CodeTree, SearchProgress
from softsurv.results import FitReport, Status
from softsurv.trees.hard_tree import Branch, HardTree
from softsurv.trees.missing_sides import larger_sides


@dataclass(frozen=True)
class FoundTree:
    """Outcome of a search; ``path`` works out the best trees with fewer leaves, none where they are not proven."""

    tree: HardTree
    report: FitReport
    path: Callable[[], tuple[SizedTree, ...]] = tuple
    code_tree: CodeTree | None = None  # of a search for relative risks


class TreeSearch:
    """Optimal trees over training rows for one objective, within a room of memory."""

    def __init__(self, rows: Rows, p: OptimalParameters, leaf: str, room: Room) -> None:
        self.rows, self.p, self.leaf, self.room = rows, p, leaf, room
        self.n_jobs = n_threads(p.n_jobs)
        self.shrinkage = AUTO_SHRINKAGE if p.shrinkage == "auto" else float(p.shrinkage)
        self.complexity = float(p.complexity)
        self.least = least_rows(p, rows.n, int(np.count_nonzero(rows.event)))
        self.cause_weights = cause_weights(p.cause_weights, rows.cause_names)
        self.baselines = [baseline_of(one) for one in rows.by_cause]
        self.hazards = [exposure(baseline, rows) for baseline in self.baselines]
        pairs = zip(rows.by_cause, self.hazards, strict=True)
        self.statistics = np.hstack([relative_risk.statistics(one.event, hazard, rows.weight) for one, hazard in pairs])

    @classmethod
    def warm_up(cls, depth: int | str | None) -> None:
        """Compile what trees of a depth need, before a clock starts."""

    def ask(self, complexity: float) -> None:
        """Take another cost per leaf from now on."""
        self.complexity = complexity

    @abstractmethod
    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: SearchProgress | None) -> FoundTree:
        """Best tree within limits."""

    def path(self, depth: int, leaves: int, seconds: float) -> tuple[list[SizedTree], Status]:
        """Best trees with at most 1, 2, ... leaves, up to the limit or to where more do not help; and how it ended.

        None of a search that finds one tree alone.
        """
        return [], Status.OPTIMAL

    def rest(self, room: float) -> None:
        """Keep at most so many bytes of what was found for the searches to come."""

    def set_aside(self) -> None:
        """Let go of what was made of the rows, until it is needed, where that is much."""

    @property
    @abstractmethod
    def held(self) -> float:
        """Bytes that the search has made of the rows."""

    @property
    def needed(self) -> float:
        """Those of the held bytes without which there is no search; the others only save time."""
        return self.held

    def limit_to(self, room: Room) -> None:
        """Change the room; what was found is forgotten."""
        self.room = room

    @abstractmethod
    def loss(self, rows: IntArray) -> float:
        """Cost of some rows as one leaf, the part that splits can change."""

    def leaf_sums(self, tree: HardTree) -> FloatArray:
        """Events and expected events of the training rows of each leaf, for each cause, (L, 2 K)."""
        leaf = self.rows.leaf_of(tree)
        return np.stack([np.bincount(leaf, column, tree.n_leaves) for column in self.statistics.T], axis=1)

    def grown(self, root: Branch | None, leaf_sums: FloatArray | None = None) -> HardTree:
        """The tree of nested branches with the relative risk of every leaf."""
        tree = HardTree.grow(self.rows.sources, root)
        if self.rows.binarizer.routes:
            tree = larger_sides(tree, self.rows.table, self.rows.weight)
        return with_risk(self.rows, tree, self.leaf_sums(tree) if leaf_sums is None else leaf_sums, self.shrinkage)

    def gains(self, tree: HardTree) -> FloatArray:
        """What each node's split takes off the cost, (V,); 0 at a leaf."""
        members, gain = node_rows(tree, tree.node_of(self.rows.table, self.rows.n)), np.zeros(tree.n_nodes)
        for node in np.flatnonzero(tree.feature >= 0):
            sides = members[tree.left[node]], members[tree.right[node]]
            gain[node] = self.loss(members[node]) - sum(self.loss(side) for side in sides)
        return gain
