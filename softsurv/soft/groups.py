"""Groups of trees that share features and times, such as the trees of one fold. A stack holds group after group.

What the trees of a group share is stored once. Trees leave a stack one by one, so one group may have fewer trees left
than another. With equally many trees in each, one product serves all groups; otherwise each group takes one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import IntArray
from softsurv.soft.one_pass import by_operators
from softsurv.trees.routing import product_by_group

REPEATED = 2**22
"""Largest copy, in elements, that a device makes of the groups' data to even out their trees: 32 MiB, within its cache.

A product for each group would be a launch for each. With larger tables the launches take little of the time.
"""


@dataclass(frozen=True)
class Groups:
    """The number of trees in each of G groups.

    Attributes
    ----------
    sizes : tuple of int (G,)
    """

    sizes: tuple[int, ...]

    @classmethod
    def equal(cls, n_trees: int, n_groups: int) -> Groups:
        """Groups of equally many trees."""
        return cls((n_trees // n_groups,) * n_groups)

    @cached_property
    def alike(self) -> bool:
        """Whether all groups have equally many trees."""
        return min(self.sizes) == max(self.sizes)

    @cached_property
    def of_tree(self) -> IntArray:
        """The group (M,) of each tree."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def take(self, trees: Tensor, table: Tensor) -> tuple[Groups, Tensor | None]:
        """The groups of some trees (m,; numbers on the host), and the former number of each of these groups.

        The numbers are None where every group stays. On a device small groups are divided, their data being repeated,
        until all have equally many trees. ``table`` (G, ...) is the largest tensor that a group's trees share.
        """
        own = self.of_tree[trees.cpu().numpy()]
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        groups, sizes = own[begins], np.diff(begins, append=len(own))
        left = Groups(tuple(sizes.tolist()))
        if not left.alike and by_operators(table.device) and table[0].numel() * len(trees) <= REPEATED:
            groups = groups.repeat(sizes // math.gcd(*left.sizes))
            left = Groups.equal(len(trees), len(groups))
        stay = np.array_equal(groups, np.arange(len(self.sizes)))
        return left, None if stay else torch.from_numpy(groups)

    def per_tree(self, value: Tensor) -> Tensor:
        """A group's tensor (G, ...) repeated for each of its trees, as a view where G is 1: (M, ...)."""
        if len(self.sizes) == 1:
            return value
        if self.alike:
            return value.repeat_interleave(self.sizes[0], 0)
        return value.index_select(0, self._on(value.device))

    def even(self, value: Tensor) -> Tensor:
        """The tensor (G, ...) itself where all groups have equally many trees, else one for each tree, (M, ...)."""
        return value if self.alike else self.per_tree(value)

    def product(
        self,
        left: Tensor,  # (M, R, X)
        right: Tensor,  # (G, X, Y)
    ) -> Tensor:  # (M, R, Y)
        """Products of the trees' matrices with those of their groups."""
        return product_by_group(left, right, None if self.alike else self.sizes)

    def _on(self, device: torch.device) -> Tensor:
        """:attr:`of_tree` on a device. It is kept, as a recorded CUDA graph reads it at a fixed address."""
        if device not in self._places:
            self._places[device] = torch.from_numpy(self.of_tree).to(device)
        return self._places[device]

    @cached_property
    def _places(self) -> dict[torch.device, Tensor]:
        return {}
