"""All trees near the optimum, without writing them down: which splits may come where, and what both sides may cost.

A split is opened where the optima of its two sides, found by the exact search, add up to no more than the limit. A side
is then looked at only up to the limit minus the optimum of the other side. So the work grows with the subsets of rows
that near-optimal trees meet, not with the number of trees: of every subset the table keeps what its trees cost and how
many cost as much. Trees of depth two come from sums over pairs of splits (`shallow.py`).

This is the idea of TreeFARMS (Xin et al. 2022), over ordered and nominal features, for any task of the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.depth_run import new_shared
from softsurv.exact.kernels.recursion import solve
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.kernels.views import Packed
from softsurv.exact.rashomon.costs import Costs, add_pairs, count_pairs, n_pairs, put_together
from softsurv.exact.rashomon.divisions import UNITS, Divisions, Rows
from softsurv.exact.rashomon.shallow import Shallow
from softsurv.results import Status
from softsurv.stopping import Stopped, StopSignal

PAIR_BYTES = 48
"""Bytes of a pair of trees while lists are put together."""

NODE_BYTES = 512
"""Bytes of a node beside its rows and its costs."""


@dataclass
class TableNode:
    """A subset of rows with the depth that is left: its trees up to a cost.

    Attributes
    ----------
    rows : (n,) int32
    depth : int
    leaf : int
        Cost as a leaf.
    most : int
        Trees up to this cost are known.
    costs : list of Costs
        Of trees with 1, 2, ... leaves. At the root only of the leaf: its other trees are counted, not listed by cost.
    openings : list of (split, TableNode, TableNode)
        Splits that some tree begins with, and their sides. None below depth three, where trees are listed anew.
    """

    rows: Rows
    depth: int
    leaf: int
    most: int
    costs: list[Costs] = field(default_factory=list)
    openings: list[tuple[int, TableNode, TableNode]] = field(default_factory=list)

    @property
    def least(self) -> int:
        """Cost of the best tree."""
        return min(costs.least for costs in self.costs)


class TreeTable:
    """The nodes of all trees that cost at most ``most``.

    Parameters
    ----------
    divisions : Divisions
    depth, leaves : int
        Limits of the trees.
    most : int
        In units of ``divisions``.
    stop : StopSignal
    memory_limit : float
        Bytes.
    first : int
        First split of the optimum: a set that is cut off begins with its trees. -1 for none.
    """

    def __init__(
        self, divisions: Divisions, depth: int, leaves: int, most: int, stop: StopSignal, memory_limit: float,
        first: int = -1,
    ) -> None:  # fmt: skip
        self.divisions, self.leaves, self.stop = divisions, min(leaves, 1 << depth), stop
        self.memory_left, self.first = memory_limit, first
        self.nodes: dict[tuple[int, int, int], TableNode] = {}
        self.search = divisions.search
        self.search.by_cuts = self.search.by_joint = False  # these searches keep no cache, which is read here
        self._packed = self.search.make_ready(depth, stop, recursive=True)
        self._cache = Packed(self.search.cache)
        control, splits = self.search.control, len(self.search.problem.feature_of)
        self._idle = Packed(new_shared(control, self.search.order, 1, math.inf, np.zeros((2, splits))))
        rows = np.arange(len(divisions.goes_left), dtype=np.int32)
        self.root = TableNode(rows, depth, Shallow(divisions, rows, 0).leaf, most)

    def fill(self) -> Status:
        """Find all nodes; the status says whether all first splits were looked at."""
        root = self.root
        root.costs = [self._as_leaf(root)]
        try:
            if root.depth > 0:
                self._open(root, 0)
        except Stopped as stopped:
            return stopped.status
        return Status.OPTIMAL

    def count(self) -> list[int]:
        """Trees with 1, 2, ... leaves."""
        found = [0] * self.leaves
        found[0] = int(self.root.costs[0].count.sum())
        for _, left, right in self.root.openings:
            for i, j in self.shares(self.root, left, right, self.leaves):
                found[i + j + 1] += count_pairs(left.costs[i], right.costs[j], self.root.most)
        return found

    def shares(self, node: TableNode, left: TableNode, right: TableNode, leaves: int) -> Iterator[tuple[int, int]]:
        """Places in the costs of both sides that make trees with at most so many leaves.

        Two leaves are left out where the split between them lowers no cost.
        """
        for i in range(len(left.costs)):
            for j in range(min(len(right.costs), leaves - 1 - i)):
                if i + j > 0 or not self.divisions.is_idle(np.array(self.gain(node, left, right))):
                    yield i, j

    def gain(self, node: TableNode, left: TableNode, right: TableNode) -> int:
        """By how much a split lowers the cost of leaves, the cost per leaf left out."""
        return node.leaf - left.leaf - right.leaf + self.divisions.per_leaf

    # -- filling -------------------------------------------------------------------------------------------------
    def _node(self, rows: Rows, depth: int, level: int, most: int) -> TableNode:
        """The node of a subset, up to a cost."""
        low, high = self.search.problem.keys[rows].sum(axis=0, dtype=np.uint64)
        key = int(low), int(high), depth
        known = self.nodes.get(key)
        if known is not None and known.most >= most:
            return known
        self._check()
        if depth <= 2:
            shallow = Shallow(self.divisions, rows, depth)
            node = TableNode(rows, depth, shallow.leaf, most, shallow.costs(most, self.leaves - level))
        else:
            node = TableNode(rows, depth, Shallow(self.divisions, rows, 0).leaf, most)
            self._open(node, level)
            node.costs = self._put_together(node, level)
        self._take(sum(costs.n_bytes for costs in node.costs) + rows.nbytes + NODE_BYTES)
        self.nodes[key] = node
        return node

    def _open(self, node: TableNode, level: int) -> None:
        """Find the splits that trees of a node begin with, and their sides."""
        depth, most = node.depth - 1, node.most
        if self.leaves - level < 2:
            return
        self._check()
        splits, left = self.divisions.of_rows(node.rows)
        order = self._by_promise(node.rows, left)
        if node is self.root:
            order = order[np.argsort(splits[order] != self.first, kind="stable")]
        for place in order:
            split, goes_left = int(splits[place]), left[:, place].astype(bool)
            sides = node.rows[goes_left], node.rows[~goes_left]
            rest = self._floor(sides[1])
            first = self._least(sides[0], depth, level, most - rest)
            if first + rest > most:
                continue
            second = self._least(sides[1], depth, level, most - first)
            if first + second > most:
                continue
            one = self._node(sides[0], depth, level + 1, most - second)
            if one.least + second > most:
                continue
            other = self._node(sides[1], depth, level + 1, most - one.least)
            if one.least + other.least <= most:
                node.openings.append((split, one, other))

    def _by_promise(self, rows: Rows, left: FloatArray) -> IntArray:
        """Places of splits that divide rows as ``left`` (n, S) says, the best stump first."""
        statistics = self.divisions.statistics[rows]
        one, whole = statistics.T @ left, statistics.sum(axis=0)[:, None]
        stump = self.divisions.leaf_costs(one) + self.divisions.leaf_costs(whole - one)
        return np.argsort(stump, kind="stable")

    def _least(self, rows: Rows, depth: int, level: int, most: int) -> int:
        """Lower bound for the trees of a side, in units; exact to rounding where that is at most ``most``."""
        self._check()
        leaves = min(self.leaves - level - 1, 1 << depth)
        if depth < 2 or leaves == 1:
            return Shallow(self.divisions, rows, min(depth, leaves - 1)).least
        key, scratch = self.search.problem.keys[rows].sum(axis=0, dtype=np.uint64), self.search.scratch[0]
        upper = (most + UNITS) * self.divisions.unit
        value = solve(
            self._packed, rows, len(rows), *key, depth, leaves, upper, 1, *scratch, self._cache, self._idle
        )  # fmt: skip
        self._check()
        return math.floor(min(value, 2 * abs(upper) + 1) / self.divisions.unit) - UNITS

    def _floor(self, rows: Rows) -> int:
        """Least cost of rows in any tree, in units: the equivalent-points bound."""
        floor = float(self.search.problem.floor[rows].sum())
        return math.floor(floor / self.divisions.unit) + self.divisions.per_leaf - UNITS

    def _put_together(self, node: TableNode, level: int) -> list[Costs]:
        """Costs of the trees of a node from those of its sides."""
        most, leaves = node.most, max(min(self.leaves - level, 1 << node.depth), 1)
        parts: list[list[Costs]] = [[] for _ in range(leaves)]
        parts[0] = [self._as_leaf(node)]
        for _, left, right in node.openings:
            self._check()
            for i, j in self.shares(node, left, right, leaves):
                one, other = left.costs[i], right.costs[j]
                if len(one) and len(other):
                    self._fits(n_pairs(one, other, most) * PAIR_BYTES)
                    parts[i + j + 1].append(put_together([add_pairs(one, other, most)]))
        self._fits(sum(len(part) for some in parts for part in some) * PAIR_BYTES)
        return [put_together(some) for some in parts]

    def _as_leaf(self, node: TableNode) -> Costs:
        """The tree without splits, where it costs no more than allowed."""
        return Costs.of(np.array([node.leaf] if node.leaf <= node.most else [], np.int64))

    # -- limits --------------------------------------------------------------------------------------------------
    def _check(self) -> None:
        if self.search.control[STOP] or self.stop.exhausted:
            raise Stopped(self.stop.reason)

    def _fits(self, n_bytes: float) -> None:
        if n_bytes > self.memory_left:
            raise Stopped(Status.MEMORY_LIMIT)

    def _take(self, n_bytes: float) -> None:
        self._fits(n_bytes)
        self.memory_left -= n_bytes
