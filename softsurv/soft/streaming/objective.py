"""The training objective summed over chunks, on this or on many processes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.soft.objective import Objective
from softsurv.soft.parallel import map_parts
from softsurv.soft.penalties import Penalties, no_penalties
from softsurv.soft.problem import Problem
from softsurv.soft.streaming.axis import Axis
from softsurv.soft.streaming.distributed import Ranks, RunningSum
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkRows
from softsurv.trees.routing import hbp_leaf, linear


class InLeaf(NamedTuple):
    """HBP leaf of some rows (n,), and what does not depend on time in its linear predictor, (n,)."""

    leaf: NDArray[np.int8 | np.int16]
    effect: NDArray[np.floating]


class StreamedObjective:
    """Training objective of one tree over all chunks of all processes, with its gradient.

    Parameters
    ----------
    chunks : PlacedChunks
        The chunks of this process.
    depth : int
    penalties : Penalties
        The penalties of one tree.
    ranks : Ranks
    workers : int
        Threads; each holds one chunk at a time.

    Notes
    -----
    Sums over chunks carry their rounding errors, so that the result depends on the chunks but not on their order
    or on how processes share them.
    """

    def __init__(self, chunks: PlacedChunks, depth: int, penalties: Penalties, ranks: Ranks, workers: int = 1) -> None:
        self.chunks, self.depth, self.ranks, self.workers = chunks, depth, ranks, workers
        self.store, axis = chunks.store, chunks.axis
        self.penalties = penalties
        self.like = penalties.anchor
        self.columns = self.like.shape[-1] - axis.family.n_shape
        self.passes = 0
        self._penalty = Objective(_empty_problem(axis, self.columns, self.like), depth, penalties)

    def value_and_gradient(self, routing: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Objective (1,) and its gradients over routing (1, B, Q) and leaves (1, L, Q + K)."""
        self.passes += 1
        free = no_penalties(1, self.like.shape[-1], self.like)

        def part(number: int) -> Tensor:
            problem = self.chunks.problem(number)
            value, d_routing, d_leaves = Objective(problem, self.depth, free).value_and_gradient(routing, leaves)
            return torch.cat([value, d_routing.flatten(), d_leaves.flatten()])

        size = 1 + routing.numel() + leaves.numel()
        total = RunningSum(leaves.new_zeros(size))
        for flat in map_parts(part, range(len(self.store)), self.workers):
            total.add(flat)
        flat = self.ranks.total(total)
        value, p_routing, p_leaves = self._penalty.penalty(routing, leaves)
        cut = 1 + routing.numel()
        return (
            value + flat[:1],
            p_routing + flat[1:cut].view_as(routing),
            p_leaves + flat[cut:].view_as(leaves),
        )

    def take(self, trees: Tensor) -> StreamedObjective:
        """The objective itself, as it has one tree."""
        return self

    def rows_in_leaves(self, routing: Tensor, leaves: Tensor) -> tuple[list[InLeaf], FloatArray]:
        """Where the rows of each chunk end, and the features of one row of each leaf that has any, (<= L, P)."""

        def part(number: int) -> tuple[InLeaf, NDArray[np.floating]]:
            """Those of one chunk."""
            design = self.store.design(number)
            x = torch.from_numpy(design)[None].to(routing)
            at = hbp_leaf(linear(routing, x), self.depth)  # (1, n)
            effect = linear(leaves[..., : self.columns], x).gather(1, at[:, None])[0, 0].cpu().numpy()
            leaf = at[0].cpu().numpy()
            _, first = np.unique(leaf, return_index=True)
            return InLeaf(leaf.astype(np.int8 if self.depth < 7 else np.int16), effect), design[first, 1:]

        found = map_parts(part, range(len(self.store)), self.workers)
        witnesses = np.concatenate([w for part_ in self.ranks.gather([w for _, w in found]) for w in part_])
        return [rows for rows, _ in found], witnesses.astype(np.float64)


def _empty_problem(axis: Axis, columns: int, like: Tensor) -> Problem:
    """A problem of no rows, whose objective is its penalties."""
    nothing = ChunkRows(np.zeros((1, columns)), np.zeros(1), np.zeros(1, dtype=bool), np.zeros(1))
    return nothing.problem(axis.family, axis.time_scale, 1.0, like)
