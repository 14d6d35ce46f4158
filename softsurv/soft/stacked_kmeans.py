"""k-means starts of many seeds and sets of rows at once, by torch's operators, on the device of the rows.

The clusterings of a start equal those of `softsurv.soft.starts.kmeans_routing`, which calls scikit-learn. The random
numbers that scikit-learn would draw are drawn first; then k-means++ and Lloyd's iterations run for all clusterings
together. The logistic regressions are solved to the end, where scikit-learn stops at a gradient of 1e-4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softsurv.soft.logistic import fit_logistic
from softsurv.soft.starts import CLASS_STRENGTH, KMEANS_REPEATS, TIED, node_seeds
from softsurv.soft.watch import Watch, runs_ahead
from softsurv.trees.routing import linear, linear_pullback
from softsurv.trees.topology import n_branches

MAX_ITERATIONS, TOLERANCE = 300, 1e-4
"""Lloyd's iterations, and the share of the variance below which the centres stand still: scikit-learn's defaults."""

EXACT = 1e-11
"""Largest entry of the gradient of a logistic regression at the end."""


CELLS = 2**24
"""Clusterings times nodes times rows that are held at once: 128 MiB a table."""


class DesignRows(NamedTuple):
    """Sets of rows, centred."""

    design: Tensor  # (G, N, Q) with a column of ones, zero in padded rows
    square: Tensor  # (G, 1, N) squared distance from the mean

    @classmethod
    def of(cls, design: Tensor) -> DesignRows:
        """The rows less their means."""
        real = design[..., :1]
        middle = (design * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        x = (design - middle)[..., 1:] * real
        return cls(torch.cat([real, x], -1), x.square().sum(-1)[:, None])

    def of_each(self, value: Tensor, n: int) -> Tensor:
        """A group's table (G, 1, N) for each of n clusterings, (n, 1, N)."""
        return value.repeat_interleave(n // len(self.design), 0)


def kmeans_starts(
    design: Tensor,  # (G, N, Q) with a leading column of ones, zero in padded rows
    depth: int,
    seeds: Sequence[int],  # S
    repeats: int = KMEANS_REPEATS,
) -> Tensor:  # (G, S, B, Q)
    """Routing weights of each start, from the clustering with the best Davies-Bouldin index of several."""
    groups, n = design.shape[:2]
    if depth == 0 or design.shape[-1] == 1:
        return design.new_zeros(groups, len(seeds), n_branches(depth), design.shape[-1])
    together = max(1, CELLS // (groups * repeats * n * 2**depth))
    parts = (seeds[first : first + together] for first in range(0, len(seeds), together))
    return torch.cat([_starts(design, depth, part, repeats) for part in parts], 1)


def _starts(design: Tensor, depth: int, seeds: Sequence[int], repeats: int) -> Tensor:
    """The same of as many seeds as are held at once."""
    groups, n = design.shape[:2]
    draws = torch.as_tensor(np.stack([_draws(seed, depth, repeats) for seed in seeds])).to(design)  # (S, R, B, 3)
    draws = draws.flatten(0, 1).repeat(groups, 1, 1)  # (G S R, B, 3)
    rows = DesignRows.of(design)
    labels = cluster(rows, depth, draws)  # (G S R, N)
    index = davies_bouldin(rows, labels, 2**depth).view(-1, repeats)
    best = labels.view(-1, repeats, n)[torch.arange(len(index), device=design.device), first_best(index)]
    return routing_of(design, best, depth).unflatten(0, (groups, len(seeds)))


def _draws(seed: int, depth: int, repeats: int) -> np.ndarray:  # (R, B, 3)
    """The uniform numbers that scikit-learn draws for each node of each clustering."""
    rng = np.random.default_rng(seed)
    each = [node_seeds(depth, rng) for _ in range(repeats)]
    return np.stack([[np.random.RandomState(own).random_sample(3) for own in seeds] for seeds in each])


def first_best(index: Tensor) -> Tensor:
    """The first of the repeats (..., R) whose index is the lowest, up to rounding."""
    lowest = index.amin(-1, keepdim=True)
    return ((index <= lowest * (1 + TIED)) | (index == lowest)).to(torch.int8).argmax(-1)


def cluster(rows: DesignRows, depth: int, draws: Tensor) -> Tensor:  # (M, N)
    """Leaf of each row (N,) in each clustering (M,), by two-means from the root down; padded rows are in some leaf."""
    real = rows.of_each(rows.design[..., 0][:, None], len(draws)) > 0  # (M, 1, N)
    labels = torch.zeros_like(real, dtype=torch.int64)
    for level in range(depth):
        nodes = torch.arange(2**level, device=labels.device)[:, None]
        here = real & (labels == nodes)  # (M, S, N)
        own = draws[:, 2**level - 1 : 2 ** (level + 1) - 1]
        side = two_means(rows, here, own) & here
        labels = 2 * labels + side.any(1, keepdim=True)
    return labels[:, 0]


def two_means(rows: DesignRows, here: Tensor, draws: Tensor) -> Tensor:  # (M, S, N) bool
    """Which rows are in the second of two clusters of those at each node (M, S, N)."""
    centres = _first_centres(rows, here, draws)  # (M, S, 2, Q)
    count = here.sum(-1).clamp(min=1)  # (M, S)
    limit = TOLERANCE * _mean_variance(rows, here, count)
    side, moving = torch.zeros_like(here), torch.ones_like(count, dtype=torch.bool)
    watch = Watch(late=runs_ahead(limit))
    for _ in range(MAX_ITERATIONS):
        now = _nearer_second(rows, centres) & here
        sums = _sums(rows, torch.stack([here & ~now, now], 2))  # (M, S, 2, Q): the first column counts
        means = torch.where(sums[..., :1] > 0, sums / sums[..., :1].clamp(min=1), centres)
        shift = (means - centres)[..., 1:].square().sum((2, 3))
        changed = (now ^ side).any(-1)
        centres = torch.where(moving[..., None, None], means, centres)
        side = torch.where(moving[..., None], now, side)
        moving = moving & changed & (shift > limit)
        known = watch(moving)
        if known is not None and not bool(known.any()):
            break
    return _nearer_second(rows, centres)


def _first_centres(rows: DesignRows, here: Tensor, draws: Tensor) -> Tensor:  # (M, S, 2, Q)
    """k-means++ with two trials (Arthur & Vassilvitskii 2007), as scikit-learn draws them."""
    weight = here.to(draws)
    n = weight.sum(-1, keepdim=True)
    place = torch.minimum((draws[..., :1] * n).floor(), (n - 1).clamp(min=0))
    first = _sums(rows, here & (weight.cumsum(-1) == place + 1))  # (M, S, Q)
    away = _distances(rows, first) * weight
    mass = away.cumsum(-1)
    wanted = draws[..., 1:] * mass[..., -1:]
    drawn = torch.searchsorted(mass, wanted.contiguous()).clamp(max=away.shape[-1] - 1)  # (M, S, 2)
    numbers = torch.arange(away.shape[-1], device=away.device)
    trials = _sums(rows, drawn[..., None] == numbers)  # (M, S, 2, Q)
    reached = _distances(rows, trials.flatten(1, 2)).unflatten(1, trials.shape[1:3])  # (M, S, 2, N)
    potential = (torch.minimum(reached, away[:, :, None]) * weight[:, :, None]).sum(-1)
    second = torch.where((potential[..., 1] < potential[..., 0])[..., None], trials[..., 1, :], trials[..., 0, :])
    return torch.stack([first, second], 2)


def _sums(rows: DesignRows, mask: Tensor) -> Tensor:
    """Sums (M, ..., Q) of the rows of each mask (M, ..., N), counts in the first column."""
    return linear_pullback(mask.flatten(1, -2).to(rows.design), rows.design).unflatten(1, mask.shape[1:-1])


def _distances(rows: DesignRows, centres: Tensor) -> Tensor:  # (M, C, N)
    """Squared distances from centres (M, C, Q)."""
    x = centres[..., 1:]
    coefficients = torch.cat([x.square().sum(-1, keepdim=True), -2 * x], -1)
    return (linear(coefficients, rows.design) + rows.of_each(rows.square, len(centres))).clamp(min=0)


def _nearer_second(rows: DesignRows, centres: Tensor) -> Tensor:  # (M, S, N) bool
    """Rows nearer to the second of two centres (M, S, 2, Q)."""
    first, second = centres[:, :, 0, 1:], centres[:, :, 1, 1:]
    offset = 0.5 * (first.square() - second.square()).sum(-1, keepdim=True)
    return linear(torch.cat([offset, second - first], -1), rows.design) > 0


def _mean_variance(rows: DesignRows, here: Tensor, count: Tensor) -> Tensor:
    """Mean over the features of the variance of the rows at each node, (M, S)."""
    mean = _sums(rows, here)[..., 1:] / count[..., None]
    squares = (rows.of_each(rows.square, len(here)) * here).sum(-1) / count
    return (squares - mean.square().sum(-1)).clamp(min=0) / (rows.design.shape[-1] - 1)


def davies_bouldin(rows: DesignRows, labels: Tensor, n_clusters: int) -> Tensor:
    """Index (M,) of each clustering (M, N), lower is better; infinite for one cluster, or one for each row."""
    real = rows.of_each(rows.design[..., 0][:, None], len(labels)) > 0
    mask = real & (labels[:, None] == torch.arange(n_clusters, device=labels.device)[:, None])  # (M, K, N)
    sums = _sums(rows, mask)
    count = sums[..., 0]
    centres = sums / count.clamp(min=1)[..., None]
    spread = (_distances(rows, centres).sqrt() * mask).sum(-1) / count.clamp(min=1)
    apart = torch.linalg.vector_norm((centres[:, :, None] - centres[:, None])[..., 1:], dim=-1)  # (M, K, K)
    used = count > 0
    pairs = used[:, :, None] & used[:, None] & (apart > 0)
    worst = torch.where(pairs, (spread[:, :, None] + spread[:, None]) / torch.where(pairs, apart, 1.0), 0.0).amax(-1)
    n_used = used.sum(-1)
    flat = (spread.amax(-1) <= 1e-8) | (apart.flatten(1).amax(-1) <= 1e-8)
    index = torch.where(flat, 0.0, worst.sum(-1) / n_used)
    return torch.where((n_used > 1) & (n_used < count.sum(-1)), index, torch.inf)


def routing_of(design: Tensor, labels: Tensor, depth: int) -> Tensor:  # (M, B, Q)
    """Logistic regressions that route each row towards its leaf (M, N); zero weights without two classes."""
    real = (design[..., 0] > 0).repeat_interleave(len(labels) // len(design), 0)
    masks, sides = [], []
    for level in range(depth):
        nodes = torch.arange(2**level, device=labels.device)[:, None]
        masks.append(real[:, None] & ((labels >> (depth - level))[:, None] == nodes))
        sides.append(((labels >> (depth - level - 1)) % 2 == 0)[:, None].expand_as(masks[-1]))
    here, left = torch.cat(masks, 1), torch.cat(sides, 1)  # (M, B, N)
    count = here.sum(-1, keepdim=True).clamp(min=1).to(design)
    ridge = 1 / (CLASS_STRENGTH * count)
    found = fit_logistic(design, here / count, left.to(design), ridge, tolerance=EXACT)
    both = ((here & left).any(-1) & (here & ~left).any(-1))[..., None]
    return torch.where(both, found, 0.0)
