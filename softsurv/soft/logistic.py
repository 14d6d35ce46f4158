"""Weighted logistic regressions of many branch nodes at once, by Newton's method: problem (8) of paper `sst`."""

from __future__ import annotations

import torch
from torch import Tensor

from softsurv.soft import logistic_kernels
from softsurv.soft.gram import WeightedGram
from softsurv.soft.groups import Groups
from softsurv.soft.one_pass import arrays, is_compiled
from softsurv.soft.watch import Watch, runs_ahead
from softsurv.stopping import StopSignal

TOLERANCE = 1e-4
"""Largest entry of the gradient at the end; scikit-learn's default, which the paper takes."""

MAX_ITERATIONS = 100
LEAST_STEP = 2.0**-20
"""A node stops where its step has been halved to this share of Newton's: there rounding decides, not the loss."""

LEAST_CURVATURE = 1e-10
"""Added to the curvature, which is zero to rounding where every row is certain."""

PRODUCTS_A_CALL = 2**27
"""Multiplications of one compiled call, which takes hundredths of a second. The time limit is checked between calls."""


def fit_logistic(
    design: Tensor,  # (G, N, Q) with a leading column of ones
    mass: Tensor,  # (M, S, N) weight of each row, 0 for those left out
    labels: Tensor,  # (M, S, N) 0 or 1
    ridge: Tensor,  # (M, S, 1) > 0, on all but the intercept
    budget: StopSignal | None = None,  # checked before each step
    gram: WeightedGram | None = None,  # of the design
    tolerance: float = TOLERANCE,
    groups: Groups | None = None,  # of the trees, equally many in each by default
) -> Tensor:  # (M, S, Q)
    """Weights that minimise sum_i mass_i log loss_i + ridge / 2 ||slopes||^2 at each node.

    With more columns than rows the penalty keeps the slopes in the span of the rows, and they are sought there: a step
    takes the square of the columns times the rows.
    """
    groups = Groups.equal(len(mass), len(design)) if groups is None else groups
    if design.shape[-1] > design.shape[1] + 1:
        basis, triangle = torch.linalg.qr(design[..., 1:].double().mT)  # (G, P, N), (G, N, N)
        few = torch.cat([design[..., :1], triangle.mT.to(design)], -1)
        found = fit_logistic(few, mass, labels, ridge, budget, None, tolerance, groups)
        return torch.cat([found[..., :1], groups.product(found[..., 1:], basis.mT.to(design))], -1)
    penalty = torch.cat([torch.zeros_like(ridge), ridge.expand(-1, -1, design.shape[-1] - 1)], -1)
    if is_compiled(design, mass):
        return _fit_compiled(groups.even(design), mass, labels, penalty, budget, tolerance)
    weights, v = torch.zeros_like(penalty), torch.zeros_like(mass)  # zero, where Newton's steps are safest
    value, size = _value(v, weights, mass, labels, penalty), torch.ones_like(ridge)
    watch, gram = Watch(late=runs_ahead(v)), WeightedGram(design) if gram is None else gram
    floor = penalty + LEAST_CURVATURE
    for _ in range(MAX_ITERATIONS):
        if budget is not None and budget.exhausted:
            break
        p = torch.sigmoid(v)
        gradient = torch.addcmul(groups.product(mass * (p - labels), design), penalty, weights)
        moving = (gradient.abs().amax(-1, keepdim=True) > tolerance) & (size > LEAST_STEP)
        known = watch(moving)
        if known is not None and not bool(known.any()):
            break
        curvature = gram(torch.ops.aten.sigmoid_backward(mass, p), groups)  # mass p (1 - p)
        curvature.diagonal(dim1=2, dim2=3).add_(floor)
        step = torch.cholesky_solve(gradient[..., None], torch.linalg.cholesky_ex(curvature)[0])[..., 0]
        trial = torch.addcmul(weights, size, step, value=-1)
        at = groups.product(trial, design.mT)
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
    tolerance: float,
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
        logistic_kernels.newton(*tables, (tolerance, LEAST_STEP, LEAST_CURVATURE), rounds)
    return weights.unflatten(0, shape)


def _value(v: Tensor, weights: Tensor, mass: Tensor, labels: Tensor, penalty: Tensor) -> Tensor:
    """Penalised loss of each node (...)."""
    loss = torch.addcmul(torch.nn.functional.softplus(v), labels, v, value=-1)
    expected = (mass[..., None, :] @ loss[..., None])[..., 0, 0]
    return torch.add(expected, (penalty * weights.square()).sum(-1), alpha=0.5)
