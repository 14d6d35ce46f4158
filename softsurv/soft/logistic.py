"""Weighted logistic regressions of many branch nodes at once, by Newton's method: problem (8) of paper `sst`."""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.stopping import StopSignal
from softsurv.trees.routing import linear, linear_pullback

TOLERANCE = 1e-4
"""Largest entry of the gradient at the end; scikit-learn's default, which the paper takes."""

MAX_ITERATIONS = 100
MAX_HALVINGS = 20

LEAST_CURVATURE = 1e-10
"""Added to the curvature, which is zero to rounding where every row is certain."""

CHUNK_ELEMENTS = 2**21
"""Products of columns held at once: 16 MiB."""


def fit_logistic(
    design: Tensor,  # (G, N, Q) with a leading column of ones
    mass: Tensor,  # (M, S, N) weight of each row, 0 for those left out; M is a multiple of G
    labels: Tensor,  # (M, S, N) 0 or 1
    ridge: Tensor,  # (M, S, 1) > 0, on all but the intercept
    budget: StopSignal | None = None,  # looked at before each step
) -> Tensor:  # (M, S, Q)
    """Weights that minimise sum_i mass_i log loss_i + ridge / 2 ||slopes||^2 at each node."""
    penalty = torch.cat([torch.zeros_like(ridge), ridge.expand(-1, -1, design.shape[-1] - 1)], -1)
    weights, v = torch.zeros_like(penalty), torch.zeros_like(mass)  # where Newton's steps are the surest
    value = _value(v, weights, mass, labels, penalty)
    for _ in range(MAX_ITERATIONS):
        if budget is not None and budget.exhausted:
            break
        p = torch.sigmoid(v)
        gradient = linear_pullback(mass * (p - labels), design) + penalty * weights
        open_ = gradient.abs().amax(-1) > TOLERANCE
        if not bool(open_.any()):
            break
        curvature = weighted_gram(design, mass * p * (1 - p)) + torch.diag_embed(penalty + LEAST_CURVATURE)
        step = -(torch.cholesky_inverse(torch.linalg.cholesky(curvature)) @ gradient[..., None])[..., 0]
        step = torch.where(open_[..., None], step, 0.0)
        weights, v, value = _taken(weights, v, value, step, linear(step, design), mass, labels, penalty)
    return weights


def weighted_gram(design: Tensor, weight: Tensor) -> Tensor:
    """sum_i weight_i x_i x_i' for each node: (G, N, Q), (M, S, N) -> (M, S, Q, Q)."""
    (groups, n, q), (m, s) = design.shape, weight.shape[:2]
    per_group = weight.reshape(groups, m // groups * s, n)
    gram = design.new_zeros(groups, m // groups * s, q * q)
    width = max(1, CHUNK_ELEMENTS // (groups * q * q))
    for begin in range(0, n, width):
        x = design[:, begin : begin + width]
        gram += per_group[..., begin : begin + width] @ (x[..., :, None] * x[..., None, :]).flatten(2)
    return gram.view(m, s, q, q)


def _value(v: Tensor, weights: Tensor, mass: Tensor, labels: Tensor, penalty: Tensor) -> Tensor:
    """Penalised loss of each node, (M, S)."""
    loss = (mass * (torch.nn.functional.softplus(v) - labels * v)).sum(-1)
    return loss + 0.5 * (penalty * weights.square()).sum(-1)


def _taken(
    weights: Tensor,
    v: Tensor,
    value: Tensor,
    step: Tensor,  # (M, S, Q)
    dv: Tensor,  # (M, S, N) what the step adds to v
    mass: Tensor,
    labels: Tensor,
    penalty: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, linear combinations and values after the step, halved at each node until it does not go up."""
    size = torch.ones_like(value)[..., None]
    for _ in range(MAX_HALVINGS):
        trial = _value(v + size * dv, weights + size * step, mass, labels, penalty)
        up = trial > value
        if not bool(up.any()):
            break
        size = torch.where(up[..., None], 0.5 * size, size)
    size = torch.where(trial <= value, 1.0, 0.0)[..., None] * size
    return weights + size * step, v + size * dv, torch.minimum(trial, value)
