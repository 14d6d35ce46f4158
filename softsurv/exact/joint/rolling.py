"""Deep trees of many rows by a rolling horizon: the first split of the best tree of depth three, and so on below it."""

from __future__ import annotations

import math

import numpy as np

from softsurv.arrays import BoolArray, FloatArray
from softsurv.exact.joint.run import DEEPEST, JointRun
from softsurv.exact.nesting import Splits
from softsurv.exact.reconstruct import share_leaves
from softsurv.exact.tree import CodeTree, TreeBuilder
from softsurv.stopping import StopSignal


def rolled(
    run: JointRun, sums: FloatArray, splits: Splits, depth: int, leaves: int, stop: StopSignal
) -> CodeTree | None:
    """A tree within limits with the first split of the best tree of depth three; None where time ran out.

    Parameters
    ----------
    run : JointRun
        Over all rows, solved.
    sums : (U, K)
        Statistics of the distinct rows as given.
    splits : Splits
        The split of the given features that each global code is.
    depth, leaves : int
    stop : StopSignal
    """
    builder = TreeBuilder()

    def grow(run: JointRun, rows: BoolArray, depth: int, leaves: int) -> int:
        """Add the tree of some rows to the builder and return its node."""
        if stop.exhausted:
            return -1
        run.depth = min(depth, DEEPEST, leaves - 1)
        run.solve(min(leaves, 1 << run.depth), math.inf, stop)
        split, found, left_leaves = run.root()
        if split < 0 or depth <= DEEPEST:
            return run.add_tree(builder, rows, sums, splits)
        code, goes_left, most = int(run.split_code[split]), run.goes_left(split), 1 << (depth - 1)
        left = share_leaves(left_leaves, found, leaves, most)
        here = builder.add(sums[rows].sum(axis=0), int(splits.feature[code]), int(splits.code[code]))
        sides = [(rows & goes_left, left), (rows & ~goes_left, leaves - left)]
        if splits.swapped[code]:
            sides.reverse()
        builder.connect(here, *(grow(run.over(side), side, depth - 1, most) for side, most in sides))
        return here

    grow(run, np.ones(len(sums), np.bool_), depth, leaves)
    return None if stop.exhausted else builder.tree()
