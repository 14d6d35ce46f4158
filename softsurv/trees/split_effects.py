"""How much each split of a soft tree changes what is predicted, whatever the sharpness of its routing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.numerics import Design
from softsurv.trees.routing import linear
from softsurv.trees.soft_tree import SoftTree


def split_effects(
    tree: SoftTree,
    x: Tensor | Design,  # (N, P) training rows
    times: FloatArray,  # (T,) > 0 at which predictions are compared
    weight: FloatArray | None = None,  # (N,)
) -> FloatArray:  # (B,)
    """Size of each split: share of the rows it divides, times how far its sides' predictions differ.

    Notes
    -----
    A row's difference is that of its predictor z in the leaf that it would reach on either side, averaged over the
    times. A split's size is the share of the rows that reach it, times the root mean square of their differences,
    times ``sqrt(p (1 - p))`` with p the share that goes left. The last factor is the standard deviation of the 0/1
    answer; effects of slopes are multiplied by the standard deviation of their feature in the same way.
    """
    with torch.no_grad():
        design = tree.design(x.to(tree.leaves))
        answers = linear(tree.routing[:1], design)[0] >= 0  # (B, N)
        asks = (tree.routing[0, :, 1:] != 0).any(-1).cpu().numpy()
        offsets, rise = _predictors(tree, times)
        values = design[0].double() @ offsets.T  # (N, L) predictors without the baseline
        counts = values.new_ones(len(values)) if weight is None else torch.as_tensor(weight).to(values)
        sizes = [_size(answers, values, rise, counts, k) if asks[k] else counts.new_zeros(()) for k in range(len(asks))]
    return torch.stack(sizes).cpu().numpy() if sizes else np.zeros(0)


def _size(answers: Tensor, values: Tensor, rise: Tensor, counts: Tensor, node: int) -> Tensor:  # ()
    """Size of the split at a node; 0 where no row reaches it. On a device its rows stay there."""
    at = torch.nonzero(_reaching(answers, node))[:, 0]
    left, right = (_leaf_below(answers[:, at], 2 * node + side) for side in (1, 2))
    apart, pairs, count = values[at, left] - values[at, right], left * values.shape[1] + right, counts[at]
    lifts = (rise[:, :, None] - rise[:, None]).flatten(1)  # (T, L * L) of each pair of leaves
    difference = torch.stack([(apart + lift[pairs]).square() for lift in lifts]).mean(0)
    total = count.sum()
    p, mean = (count * answers[node, at]).sum() / total, (count * difference).sum() / total
    return torch.where(total > 0, total / counts.sum() * (p * (1 - p) * mean).sqrt(), 0.0)


def _reaching(answers: Tensor, node: int) -> Tensor:
    """Which rows reach a branch node, (N,), by the answers (B, N) of all rules."""
    reach = torch.ones_like(answers[0])
    while node > 0:
        parent = (node - 1) // 2
        reach = reach & (answers[parent] == (node == 2 * parent + 1))
        node = parent
    return reach


def _leaf_below(answers: Tensor, node: int) -> Tensor:
    """Leaf (N,) that each row reaches from a node."""
    n_branches, at = len(answers), torch.full_like(answers[0], node, dtype=torch.int64)
    while node < n_branches:
        at, node = 2 * at + 2 - answers.gather(0, at[None])[0].long(), 2 * node + 1
    return at - n_branches


def _predictors(tree: SoftTree, times: FloatArray) -> tuple[Tensor, Tensor]:
    """Coefficients (L, P + 1) of all leaves, and their baselines at the times (T, L)."""
    q = tree.n_features + 1
    log_time = torch.as_tensor(np.log(times)).to(tree.leaves)[None]
    rise, _ = tree.family.baseline(tree.leaves[:1, :, q:], tree.family.time_features(log_time, tree.time_scale[:1]))
    each = rise[0].expand(tree.leaves.shape[1], -1).double()
    return tree.leaves[0, :, :q].detach().double(), each.mT
