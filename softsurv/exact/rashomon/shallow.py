"""Every tree of depth at most two over some rows, from sums over pairs of splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.rashomon.costs import IMPOSSIBLE, Costs, add_pairs, pairs, put_together
from softsurv.exact.rashomon.divisions import Divisions, Rows
from softsurv.exact.tree import LEAF


@dataclass(frozen=True)
class Listed:
    """Trees of depth at most two, the cheapest first.

    Attributes
    ----------
    cost : (T,) int
    splits : (T, 3) int
        Split of the root, of its left and of its right side, `LEAF` for none.
    gains : (T, 3) int
        By how much each of them lowers the cost.
    """

    cost: IntArray
    splits: IntArray
    gains: IntArray


class Shallow:
    """Costs of the rows as a leaf, of both sides of each split, and of both sides with one more split.

    Parameters
    ----------
    divisions : Divisions
    rows : (n,) int32
    depth : int
        0, 1 or 2.
    """

    def __init__(self, divisions: Divisions, rows: Rows, depth: int) -> None:
        self.divisions, self.depth = divisions, depth
        statistics = divisions.statistics[rows]
        total = statistics.sum(axis=0)
        self.leaf = int(divisions.leaf_costs(total[:, None])[0])
        self.splits: IntArray = np.zeros(0, np.int64)
        if depth == 0:
            return
        self.splits, left = divisions.of_rows(rows)
        single = statistics.T @ left  # (W + 1, S)
        self.sides = np.stack([divisions.leaf_costs(single), divisions.leaf_costs(total[:, None] - single)])  # (2, S)
        if depth == 2:
            both = np.stack([(left * column[:, None]).T @ left for column in statistics.T])  # (W + 1, S, S)
            self.stumps = self._stumps(total, single, both, rows, left)

    def _stumps(
        self, total: FloatArray, single: FloatArray, both: FloatArray, rows: Rows, left: FloatArray
    ) -> IntArray:
        """Cost of each side of split a with the split b, (2, S, S); `IMPOSSIBLE` where b does not lower it."""
        costs, count, n = self.divisions.leaf_costs, both[-1], single[-1]
        one, other = single[:, :, None] - both, single[:, None, :] - both
        rest = total[:, None, None] - single[:, :, None] - other
        out = np.stack([costs(both) + costs(one), costs(other) + costs(rest)])
        divides = self.divisions.dividing
        out[0][~divides(self.splits, count, n, rows, left)] = IMPOSSIBLE
        out[1][~divides(self.splits, n - count, total[-1] - n, rows, 1.0 - left)] = IMPOSSIBLE
        gain = self.sides[:, :, None] - out + self.divisions.per_leaf
        return np.where(self.divisions.is_idle(gain), IMPOSSIBLE, out)

    @property
    def halves(self) -> IntArray:
        """Cost of the trees with two leaves, (S,); `IMPOSSIBLE` where the split lowers no cost."""
        cost = self.sides.sum(axis=0)
        return np.where(self.divisions.is_idle(self.leaf - cost + self.divisions.per_leaf), IMPOSSIBLE, cost)

    @property
    def least(self) -> int:
        """Cost of the best tree of depth 0 or 1."""
        return min(self.leaf, int(self.halves.min(initial=IMPOSSIBLE))) if self.depth else self.leaf

    def costs(self, most: int, leaves: int) -> list[Costs]:
        """Trees with 1, 2, ..., ``leaves`` leaves that cost at most ``most``."""
        leaves = min(leaves, 1 << self.depth)
        found = [Costs.of(np.array([self.leaf] if self.leaf <= most else [], np.int64))]
        if leaves > 1:
            found.append(_up_to(self.halves, most))
        if leaves > 2:
            mixed = self.stumps + self.sides[::-1, :, None]
            found.append(_up_to(mixed, most))
        if leaves > 3:
            parts = [add_pairs(*sides, most) for _, sides in self._both_split(most)]
            found.append(put_together(parts))
        return found

    def _both_split(self, most: int) -> Iterator[tuple[int, tuple[Costs, Costs]]]:
        """Splits of which both sides may have one more split, with the costs of these sides."""
        least = self.stumps.min(axis=2, initial=IMPOSSIBLE)  # (2, S)
        for a in np.flatnonzero(least.sum(axis=0) <= most):
            yield (
                int(a),
                (
                    _up_to(self.stumps[0, a], most - int(least[1, a])),
                    _up_to(self.stumps[1, a], most - int(least[0, a])),
                ),
            )

    def listed(self, most: int) -> dict[int, Listed]:
        """Trees by their number of leaves."""
        none = np.zeros(1, np.int64) + LEAF
        found = {1: self._sorted(np.array([self.leaf]), none, none, none, most)}
        if self.depth > 0:
            s = np.arange(len(self.splits))
            found[2] = self._sorted(self.halves, s, s * 0 + LEAF, s * 0 + LEAF, most)
        if self.depth > 1:
            mixed = self.stumps + self.sides[::-1, :, None]
            side, a, b = np.nonzero(mixed <= most)
            left, right = np.where(side == 0, b, LEAF), np.where(side == 1, b, LEAF)
            found[3] = self._sorted(mixed[side, a, b], a, left, right, most)
            found[4] = self._fours(most)
        return found

    def _fours(self, most: int) -> Listed:
        """Trees with four leaves, as `listed`."""
        cost, places = [np.zeros(0, np.int64)], [np.zeros((3, 0), np.int64)]
        for a, _ in self._both_split(most):
            order = self.stumps[:, a].argsort(axis=1)
            x, y = (self.stumps[side, a][order[side]] for side in range(2))
            i, j = pairs(x, y, most)
            cost.append(x[i] + y[j])
            places.append(np.stack([np.full(len(i), a), order[0, i], order[1, j]]))
        root, left, right = np.concatenate(places, axis=1)
        return self._sorted(np.concatenate(cost), root, left, right, most)

    def _sorted(self, cost: IntArray, root: IntArray, left: IntArray, right: IntArray, most: int) -> Listed:
        """Trees up to a cost in the order of their costs, from places of splits, `LEAF` for none."""
        kept = np.flatnonzero(cost <= most)
        kept = kept[np.argsort(cost[kept], kind="stable")]
        cost, place = cost[kept], np.column_stack([root, left, right])[kept]
        gains = np.zeros(place.shape, np.int64)
        if self.depth > 0:
            sides = np.append(self.sides, np.zeros((2, 1), np.int64), axis=1)[:, place[:, 0]]  # (2, T)
            more = self.divisions.per_leaf
            gains[:, 0] = np.where(place[:, 0] == LEAF, 0, self.leaf - sides.sum(axis=0) + more)
            for side in range(2 if self.depth > 1 else 0):
                split = np.flatnonzero(place[:, 1 + side] != LEAF)
                a, b = place[split, 0], place[split, 1 + side]
                gains[split, 1 + side] = sides[side, split] - self.stumps[side, a, b] + more
        return Listed(cost, np.append(self.splits, LEAF)[place], gains)


def _up_to(cost: IntArray, most: int) -> Costs:
    return Costs.of(cost[cost <= most])
