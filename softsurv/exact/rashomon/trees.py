"""The trees of a table, the best first, each made when it is asked for."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softsurv.exact.rashomon.shallow import Listed, Shallow
from softsurv.exact.rashomon.table import TableNode, TreeTable
from softsurv.exact.tree import LEAF

LISTS_KEPT = 256
"""Most subsets whose trees of depth two stay listed."""

GROUP = 512
"""Trees of one cost over one subset that are kept once they were made; more are made again."""

GROUPS_KEPT = 1_000_000
"""Most trees that are kept so in all."""


@dataclass(frozen=True, slots=True)
class Subtree:
    """A tree over a subset: its split, its sides, None at a leaf, and by how much the split itself lowers the cost."""

    split: int
    left: Subtree | None = None
    right: Subtree | None = None
    gain: int = 0

    def gains(self) -> Iterator[tuple[int, int]]:
        """(split, gain) of all its splits."""
        if self.left is not None and self.right is not None:
            yield self.split, self.gain
            yield from self.left.gains()
            yield from self.right.gains()


END = Subtree(LEAF)


class Trees:
    """Makes the trees of a table."""

    def __init__(self, table: TreeTable) -> None:
        self.table = table
        self._lists: OrderedDict[int, dict[int, Listed]] = OrderedDict()
        self._groups: dict[tuple[int, int, int], list[Subtree]] = {}
        self._n_kept = 0

    def __iter__(self) -> Iterator[tuple[int, Subtree]]:
        """(cost, tree) of all trees, in the order of their costs."""
        table, root = self.table, self.table.root
        heap: list[tuple[int, int, int, int]] = []
        sides = [
            (split, left, i, right, j)
            for split, left, right in root.openings
            for i, j in table.shares(root, left, right, table.leaves)
        ]

        def push(place: int, a: int, b: int) -> None:
            """Offer the pair of the a-th cost on the left and the b-th on the right."""
            _, left, i, right, j = sides[place]
            one, other = left.costs[i].cost, right.costs[j].cost
            if a < len(one) and b < len(other) and one[a] + other[b] <= root.most:
                heapq.heappush(heap, (int(one[a] + other[b]), place, a, b))

        for cost in root.costs[0].cost.tolist():
            heapq.heappush(heap, (cost, LEAF, 0, 0))
        for place in range(len(sides)):
            push(place, 0, 0)
        while heap:
            cost, place, a, b = heapq.heappop(heap)
            if place == LEAF:
                yield cost, END
                continue
            push(place, a, b + 1)
            if b == 0:
                push(place, a + 1, 0)
            split, left, i, right, j = sides[place]
            gain = table.gain(root, left, right)
            for one in self._of(left, i + 1, int(left.costs[i].cost[a])):
                for other in self._of(right, j + 1, int(right.costs[j].cost[b])):
                    yield cost, Subtree(split, one, other, gain)

    def _of(self, node: TableNode, leaves: int, cost: int) -> Iterator[Subtree]:
        """Trees of a node with so many leaves and that cost."""
        if leaves == 1:
            yield END
            return
        key = id(node), leaves, cost
        if key in self._groups:
            yield from self._groups[key]
            return
        some: list[Subtree] = []
        for part in self._deep(node, leaves, cost) if node.depth > 2 else self._shallow(node, leaves, cost):
            if len(some) <= GROUP:
                some.append(part)
            yield part
        if len(some) <= GROUP and self._n_kept < GROUPS_KEPT:
            self._groups[key] = some
            self._n_kept += len(some)

    def _deep(self, node: TableNode, leaves: int, cost: int) -> Iterator[Subtree]:
        for split, left, right in node.openings:
            gain = self.table.gain(node, left, right)
            for i, j in self.table.shares(node, left, right, leaves):
                if i + j + 2 < leaves:
                    continue
                one, other = left.costs[i].cost, right.costs[j].cost
                for first in np.intersect1d(one, cost - other, assume_unique=True).tolist():
                    for a in self._of(left, i + 1, first):
                        for b in self._of(right, j + 1, cost - first):
                            yield Subtree(split, a, b, gain)

    def _shallow(self, node: TableNode, leaves: int, cost: int) -> Iterator[Subtree]:
        listed = self._listed(node)[leaves]
        begin, end = np.searchsorted(listed.cost, [cost, cost + 1])
        for (root, left, right), (gain, *more) in zip(
            listed.splits[begin:end].tolist(), listed.gains[begin:end].tolist(), strict=True
        ):
            yield Subtree(root, _stump(left, more[0]), _stump(right, more[1]), gain)

    def _listed(self, node: TableNode) -> dict[int, Listed]:
        """All trees of a node of depth at most two."""
        key = id(node)
        if key not in self._lists:
            self._lists[key] = Shallow(self.table.divisions, node.rows, node.depth).listed(node.most)
            if len(self._lists) > LISTS_KEPT:
                self._lists.popitem(last=False)
        self._lists.move_to_end(key)
        return self._lists[key]


def _stump(split: int, gain: int) -> Subtree:
    return END if split == LEAF else Subtree(split, END, END, gain)
