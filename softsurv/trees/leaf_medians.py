"""What a soft tree predicts for the rows of a leaf, in one number: the median of their mean predicted curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.trees.soft_tree import SoftTree

BISECTIONS = 50
"""Halvings of the span of log time: to a share of 1e-13 of a time."""

SPAN = 60.0
"""Log time from the earliest median that is looked for to the last one."""


def predicted_medians(
    trees: Sequence[SoftTree],
    x: Tensor,  # (N, P)
    leaf: IntArray,  # (N,)
    n_leaves: int,
    longest: float,
    weight: FloatArray | None = None,  # (N,)
) -> FloatArray:
    """Median of the mean predicted survival curve of the rows in each leaf, (L,).

    Parameters
    ----------
    trees : sequence of SoftTree
        Of each cause: the curve is that of no event of any cause.
    x : Tensor (N, P)
        Encoded rows.
    leaf : ndarray (N,)
        The leaf of each row, from 0 on the left, without holes.
    n_leaves : int
        L.
    longest : float
        The last time that was observed.
    weight : ndarray (N,), optional

    Returns
    -------
    ndarray (L,)
        inf where the mean curve is above one half at ``longest``, nan for a leaf without rows.
    """
    weight = np.ones(len(leaf)) if weight is None else weight
    size = np.bincount(leaf, weight, n_leaves)
    with torch.no_grad(), np.errstate(invalid="ignore", divide="ignore"):
        x = x.to(trees[0].leaves)
        at = trees[0].apply_leaf(x)  # (1, N)
        parts = [(tree, tree.effects_in_leaves(x).gather(1, at[:, None])[0, 0]) for tree in trees]
        place = np.zeros(n_leaves, dtype=np.int64)  # of each leaf among those of the topology
        place[leaf] = at[0].cpu().numpy()

        def stays(log_time: FloatArray) -> FloatArray:
            """Mean survival in each leaf, (L,), at a log time of its own (L,)."""
            own = np.zeros(trees[0].leaves.shape[1])
            own[place] = log_time
            hazard = sum(tree.hazard_in_leaf(effects, at[0], torch.as_tensor(own).to(x)) for tree, effects in parts)
            survival = torch.exp(-torch.as_tensor(hazard)).double().cpu().numpy()
            mean: FloatArray = np.bincount(leaf, weight * survival, n_leaves) / size
            return mean

        low, high = (np.full(n_leaves, np.log(longest) - back) for back in (SPAN, 0.0))
        never = stays(high) > 0.5
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            over = stays(middle) > 0.5
            low, high = np.where(over, middle, low), np.where(over, high, middle)
    found: FloatArray = np.where(never, np.inf, np.exp(high))
    return np.where(size > 0, found, np.nan)
