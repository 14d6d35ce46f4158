"""How much each split of a soft tree changes what is predicted, whatever the sharpness of its routing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.numerics import Design
from softsurv.trees.linear_rule import leaf_below, rows_at
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
        answers = (linear(tree.routing[:1], design)[0] >= 0).cpu().numpy()  # (B, N)
        asks = (tree.routing[0, :, 1:] != 0).any(-1).cpu().numpy()
        offsets, rise = _predictors(tree, times)
    # (N, L) predictors without the baseline; a device has the design, and sends them alone
    values = (design[0].double() @ offsets.to(design.device).T).cpu().numpy()
    counts = np.ones(answers.shape[1]) if weight is None else weight
    sizes = np.zeros(len(answers))
    for node in np.flatnonzero(asks):
        at = np.flatnonzero(rows_at(answers, int(node)))
        total = counts[at].sum()
        if total == 0:
            continue
        left, right = (leaf_below(answers[:, at], 2 * int(node) + side) for side in (1, 2))
        apart = values[at, left] - values[at, right]
        difference = np.mean([(apart + own[left] - own[right]) ** 2 for own in rise], 0)
        p = counts[at[answers[node, at]]].sum() / total
        sizes[node] = total / counts.sum() * np.sqrt(p * (1 - p) * np.average(difference, weights=counts[at]))
    return sizes


def _predictors(tree: SoftTree, times: FloatArray) -> tuple[Tensor, FloatArray]:
    """Coefficients (L, P + 1) of all leaves, and their baselines at the times (T, L)."""
    q = tree.n_features + 1
    log_time = torch.as_tensor(np.log(times)).to(tree.leaves)[None]
    rise, _ = tree.family.baseline(tree.leaves[:1, :, q:], tree.family.time_features(log_time, tree.time_scale[:1]))
    each = rise[0].expand(tree.leaves.shape[1], -1).double().cpu().numpy()
    return tree.leaves[0, :, :q].detach().double().cpu(), each.T
