"""Cumulative incidences of a stack of soft trees, by torch's operators, on the device of the trees.

The formula and the grid are those of `softsurv.trees.incidence`. The grid is processed once, in parts. Sums at the end
of a part are carried over to the next one, so that memory is bounded whatever the number of rows and times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.trees.incidence import LARGEST_HAZARD, log_lattice
from softsurv.trees.soft_tree import SoftTree


class Lattice:
    """A grid of times, and the times at which values are wanted, on a device.

    Parameters
    ----------
    times : ndarray (T,)
        Above 0, increasing.
    horizon : float
    first : float
        The last and the first event in training, as :func:`softsurv.trees.incidence.log_lattice` takes them.
    like : Tensor
        Gives the device.
    """

    def __init__(self, times: FloatArray, horizon: float, first: float, like: Tensor) -> None:
        grid = log_lattice(horizon, float(times[-1]), first) if times.size else times
        before = np.searchsorted(grid, times, side="right")  # (T,) grid points at or before each time
        self.size = int(before[-1]) + times.size if times.size else 0
        self._rank = before + np.arange(times.size)  # (T,) place of each time among both
        self.grid, self.times, self.before = (torch.as_tensor(v).to(like.device) for v in (grid, times, before))

    def parts(self, width: int) -> Iterator[tuple[slice, slice]]:
        """Slices of the grid and of the times, part by part; a part holds at most ``width`` of both together."""
        for first in range(0, self.size, width):
            begin, end = np.searchsorted(self._rank, [first, first + width]).tolist()
            yield slice(first - begin, min(first + width, self.size) - end), slice(begin, end)


class _Sofar(NamedTuple):
    """Sums up to a point of the grid."""

    hazards: Tensor  # (K, M, N)
    total: Tensor  # (M, N) their sum, added up step by step
    risen: Tensor  # (K, M, N) incidences


class StackOfCauses:
    """One stack of trees for each cause, and rows. The stacks differ in their leaves alone.

    Parameters
    ----------
    trees : sequence of SoftTree (K,)
        Stacks of M trees.
    x : Tensor (N, P)
        On their device.
    """

    def __init__(self, trees: Sequence[SoftTree], x: Tensor) -> None:
        self.trees, self.x = trees, x.to(trees[0].leaves)
        self._leaf = trees[0].apply_leaf(self.x)  # (M, N)

    @property
    def n_trees(self) -> int:
        """M."""
        return self.trees[0].n_trees

    def hazards(self, times: Tensor) -> Tensor:
        """Cumulative hazard of each cause at times (T,) > 0, (K, M, N, T) in float64."""
        later = times.to(self.x)
        predicted = (tree.predictor(self.x, later, self._leaf)[0] for tree in self.trees)
        found = [tree.family.link.cumulative_hazard(z)[0] for tree, z in zip(self.trees, predicted, strict=True)]
        return torch.stack(found).double()

    def log_hazard(self, times: Tensor) -> Tensor:
        """Log H of the first cause at times (T,) > 0, (M, N, T), which keeps its order where H itself saturates."""
        tree = self.trees[0]
        return tree.family.link.log_cumulative_hazard(tree.predictor(self.x, times.to(self.x), self._leaf)[0])

    def log_hazard_of_all(self, times: Tensor) -> Tensor:
        """Log of the hazards of all causes added up at times (T,) > 0, (M, N, T)."""
        return self.hazards(times).sum(0).log()

    def incidences(self, lattice: Lattice, cells: int) -> Iterator[tuple[slice, Tensor]]:
        """Cumulative incidences (K, M, N, C) in float64 at the times of a lattice: one part of C times after the other.

        ``cells`` is the most cells that a table of hazards may have.
        """
        causes, (m, n) = len(self.trees), self._leaf.shape
        nothing = torch.zeros(causes, m, n, dtype=torch.float64, device=self.x.device)
        sofar = _Sofar(nothing, nothing[0], nothing)
        for points, times in lattice.parts(max(1, cells // (causes * m * n))):
            both = torch.cat([lattice.grid[points], lattice.times[times]])
            hazards = self.hazards(both).clamp(max=LARGEST_HAZARD)
            n_points = points.stop - points.start
            at_points, total, risen = _carried(sofar, hazards[..., :n_points])
            if times.stop > times.start:
                place = lattice.before[times] - points.start
                start = at_points.index_select(-1, place)
                rise = (hazards[..., n_points:] - start).clamp(min=0.0)
                before = risen.index_select(-1, place).clamp(max=1.0)
                yield times, (before + step(start.sum(0), rise)).clamp(max=1.0)
            sofar = _Sofar(at_points[..., -1], total[..., -1], risen[..., -1])


def _carried(sofar: _Sofar, hazards: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hazards (K, M, N, 1 + G), their sum and the incidences: at the point before, and at each of the next."""
    at_points = torch.cat([sofar.hazards[..., None], hazards], -1)
    rises = at_points.diff(dim=-1)
    total = torch.cat([sofar.total[..., None], rises.sum(0)], -1).cumsum(-1)
    risen = torch.cat([sofar.risen[..., None], step(total[..., :-1], rises)], -1).cumsum(-1)
    return at_points, total, risen


def step(
    total: Tensor,  # (M, N, G) all hazards before the step
    rise: Tensor,  # (K, M, N, G)
) -> Tensor:  # (K, M, N, G)
    """Rise of each cumulative incidence over a step."""
    whole = rise.sum(0)
    share = torch.where(whole > 0, rise / whole, 0.0)
    return torch.exp(-total) * -torch.expm1(-whole) * share
