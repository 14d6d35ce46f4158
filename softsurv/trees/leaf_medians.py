"""The prediction of a soft tree for the rows of a leaf, as one number: the median of their mean predicted curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.numerics import Design
from softsurv.roots import rising_root
from softsurv.trees.soft_tree import SoftTree

RESOLUTION = 1e-13
"""Medians are found to this share of their time."""

SPAN = 1500.0
"""Medians are sought from this much log time before the last observed time up to that time: all that floats hold."""

MOST_LOG_ODDS = 700.0
"""Log odds of an event are cut at this and at its negative, about where floats end."""

BLOCK = 1 << 18
"""Rows of which the chances are worked out at once: those of all rows of a large table would take the most memory."""


def predicted_medians(
    trees: Sequence[SoftTree],
    x: Tensor | Design,  # (N, P)
    leaf: IntArray,  # (N,)
    n_leaves: int,
    longest: float,
    weight: FloatArray | None = None,  # (N,)
) -> FloatArray:
    """Median of the mean predicted survival curve of the rows in each leaf, (L,).

    Parameters
    ----------
    trees : sequence of SoftTree
        The tree of each cause. The curve is the probability of no event of any cause.
    x : Tensor or Design (N, P)
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
    with torch.no_grad():
        x = x.to(trees[0].leaves)
        at = trees[0].apply_leaf(x)  # (1, N)
        effects = [tree.effects_in_leaves(x).gather(1, at[:, None])[0, 0] for tree in trees]
    return medians_of_effects(trees, effects, at[0], leaf, n_leaves, longest, weight)


def medians_of_effects(
    trees: Sequence[SoftTree],
    effects: Sequence[Tensor],  # of each tree, (N,)
    at: Tensor,  # (N,)
    leaf: IntArray,  # (N,)
    n_leaves: int,
    longest: float,
    weight: FloatArray | None = None,  # (N,)
) -> FloatArray:
    """The same where the rows are not there any more, but what does not depend on time in the leaf of each.

    ``at`` numbers all leaves of the complete tree, ``leaf`` those that rows reach. Others as in `predicted_medians`.
    """
    weight = np.ones(len(leaf)) if weight is None else weight
    size = np.bincount(leaf, weight, n_leaves)
    filled = size > 0
    share = weight / np.where(filled, size, 1.0)[leaf]
    with torch.no_grad(), np.errstate(divide="ignore"):
        like = trees[0].leaves
        place = np.zeros(n_leaves, dtype=np.int64)  # of each leaf among all leaves of the complete tree
        place[leaf] = at.cpu().numpy()
        blocks = [slice(first, first + BLOCK) for first in range(0, len(leaf), BLOCK)]
        numbers, shares = torch.as_tensor(leaf).to(like.device), torch.as_tensor(share).to(like.device)

        def log_odds(log_time: FloatArray) -> FloatArray:
            """Log odds of an event in each leaf (L,) up to its log time (L,), by the mean chance of its rows."""
            own = np.zeros(like.shape[1])
            own[place[filled]] = log_time[filled]
            then, mean = torch.as_tensor(own).to(like), np.zeros(n_leaves)
            for some in blocks:
                parts = zip(trees, effects, strict=True)
                hazard = sum(tree.hazard_in_leaf(part[some], at[some], then) for tree, part in parts)
                chance = -torch.expm1(-torch.as_tensor(hazard)).double()
                mean += _sums(shares[some] * chance, numbers[some], n_leaves)
            mean = np.minimum(mean, 1.0)
            return np.clip(np.log(mean) - np.log1p(-mean), -MOST_LOG_ODDS, MOST_LOG_ODDS)

        last = np.full(n_leaves, np.log(longest))
        found, reached = rising_root(log_odds, last - SPAN, last, RESOLUTION)
    return np.where(filled, np.where(reached, np.exp(found), np.inf), np.nan)


def _sums(values: Tensor, leaf: Tensor, n_leaves: int) -> FloatArray:
    """Sum of the values (N,) in each leaf, (L,), where they are: CUDA's own count would add them in any order."""
    if values.device.type == "cpu":
        return np.bincount(leaf.numpy(), values.numpy(), n_leaves).astype(float)
    return torch.stack([torch.where(leaf == k, values, 0.0).sum() for k in range(n_leaves)]).cpu().numpy()
