"""Weighted logistic regressions of many branch nodes at once, by Newton's method: problem (8) of paper `sst`."""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.soft import logistic_kernels
from softsurv.soft.one_pass import arrays, is_compiled
from softsurv.soft.optimisers import Watch, runs_ahead
from softsurv.stopping import StopSignal
from softsurv.trees.routing import linear, linear_pullback

TOLERANCE = 1e-4
"""Largest entry of the gradient at the end; scikit-learn's default, which the paper takes."""

MAX_ITERATIONS = 100
LEAST_STEP = 2.0**-20
"""Share of Newton's step at which a node stays where it is: rounding, not the loss, is what it meets there."""

LEAST_CURVATURE = 1e-10
"""Added to the curvature, which is zero to rounding where every row is certain."""

PRODUCTS_A_CALL = 2**27
"""Products that a call of the compiled loops takes, hundredths of a second: between calls the clock is looked at."""

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
    if is_compiled(design, mass):
        return _fit_compiled(design, mass, labels, penalty, budget)
    weights, v = torch.zeros_like(penalty), torch.zeros_like(mass)  # where Newton's steps are the surest
    value, size = _value(v, weights, mass, labels, penalty), torch.ones_like(ridge)
    watch = Watch(late=runs_ahead(v))
    for _ in range(MAX_ITERATIONS):
        if budget is not None and budget.exhausted:
            break
        p = torch.sigmoid(v)
        gradient = linear_pullback(mass * (p - labels), design) + penalty * weights
        moving = (gradient.abs().amax(-1, keepdim=True) > TOLERANCE) & (size > LEAST_STEP)
        known = watch(moving)
        if known is not None and not bool(known.any()):
            break
        curvature = weighted_gram(design, mass * p * (1 - p)) + torch.diag_embed(penalty + LEAST_CURVATURE)
        step = -size * torch.cholesky_solve(gradient[..., None], torch.linalg.cholesky_ex(curvature)[0])[..., 0]
        trial, at = weights + step, v + linear(step, design)
        reached = _value(at, trial, mass, labels, penalty)
        fits = moving & (reached <= value)[..., None]  # a node that would go up halves its next step
        weights, v = torch.where(fits, trial, weights), torch.where(fits, at, v)
        value, size = torch.where(fits[..., 0], reached, value), torch.where(fits, 1.0, 0.5 * size)
    return weights


def _fit_compiled(
    design: Tensor,  # (G, N, Q)
    mass: Tensor,  # (M, S, N)
    labels: Tensor,  # (M, S, N)
    penalty: Tensor,  # (M, S, Q)
    budget: StopSignal | None,
) -> Tensor:  # (M, S, Q)
    """The same node by node, in compiled rounds."""
    shape = penalty.shape[:2]
    mass, labels, penalty = (table.flatten(0, 1).contiguous() for table in (mass, labels, penalty))
    weights, size = torch.zeros_like(penalty), torch.ones_like(penalty[:, 0])
    moving, value = mass.any(-1), _value(torch.zeros_like(mass), weights, mass, labels, penalty)
    tables = arrays(design, mass, labels, penalty, weights, value, size, moving)
    products = mass.numel() * (design.shape[-1] + 16) ** 2 // 2
    rounds = min(max(PRODUCTS_A_CALL // max(products, 1), 1), MAX_ITERATIONS)
    for _ in range(0, MAX_ITERATIONS, rounds):
        if (budget is not None and budget.exhausted) or not bool(moving.any()):
            break
        logistic_kernels.newton(*tables, (TOLERANCE, LEAST_STEP, LEAST_CURVATURE), rounds)
    return weights.unflatten(0, shape)


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
