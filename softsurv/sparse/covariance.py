"""Covariance of the leaves' parameters: the inverse Hessian of the penalised likelihood, given each row's leaf.

Where subjects have several rows, or events that recur, the rows of a subject are not independent. Then the covariance
is the sandwich: the inverse Hessian on both sides of the sum over subjects of the outer products of their scores (Lin
and Wei 1989; Lawless and Nadeau 1995).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.soft.problem import Problem
from softsurv.sparse.leaf_fit import LeafObjective, LeafPenalties, in_double, row_terms
from softsurv.trees.routing import linear

STEP = 1e-4
"""Distance of central differences of the analytic gradient: an error of 1e-8 in curvatures of order one."""

FLAT = 1e-10
"""Least curvature, as a share of the largest. Directions that the data do not determine so get a huge variance."""

MOST_PARAMETERS = 1000
"""Most parameters whose covariance is computed. With more the inverse takes too long: there are no standard errors."""

NO_PENALTY = torch.zeros(1, dtype=torch.float64)


def rule_covariance(
    problem: Problem,
    leaf: Tensor,  # (N,)
    model: Tensor,  # (1 + L, Q + K) common model and deviations
    penalties: LeafPenalties,
    total: float,
    subject: Tensor | None = None,  # (N,) codes from 0
) -> FloatArray | None:  # (L, Q + K, Q + K)
    """Covariance of every leaf's parameters, where all leaves have a common model and deviate from it.

    Parameters
    ----------
    problem : Problem
        The problem of one tree.
    leaf : Tensor (N,)
        On the host, whatever the device of the problem.
    penalties : LeafPenalties
        On the scale of the mean loss.
    total : float
        Number of rows, or the sum of their weights: this times the mean loss is the negative log-likelihood.
    subject : Tensor (N,), optional
        Subject of each row, where subjects have several: the covariance is then the sandwich by subject.

    Returns
    -------
    ndarray or None
        None where there are more than :data:`MOST_PARAMETERS`.
    """
    problem, model = in_double(problem), model.double()
    n_leaves, size = len(model) - 1, model.shape[-1]
    strength, deviates = (part[0] for part in penalties.of_deviations(n_leaves, problem.design.shape[-1], size))
    free = torch.as_tensor(np.flatnonzero(deviates.numpy()))
    if size + n_leaves * len(free) > MOST_PARAMETERS:
        return None
    leaves = model[:1] + model[1:]
    each = information(problem, leaf, leaves)
    whole = torch.zeros(2 * (size + n_leaves * len(free),), dtype=torch.float64)
    whole[:size, :size] = each.sum(0)
    slopes = torch.arange(1, problem.design.shape[-1])
    whole[slopes, slopes] += float(penalties.ridge[0])
    places = [slice(size + k * len(free), size + (k + 1) * len(free)) for k in range(n_leaves)]
    for own, at in zip(each, places, strict=True):
        whole[:size, at], whole[at, :size] = own[:, free], own[free]
        whole[at, at] = own[free][:, free] + torch.diag(strength[free].double())
    inverse = _inverse(whole) / total
    if subject is not None:
        scores = row_scores(problem, leaf, leaves).cpu()
        own = scores.new_zeros(int(subject.max()) + 1, len(whole))
        own[:, :size] = _by_subject(scores, subject)
        for k, at in enumerate(places):
            own[:, at] = _by_subject(torch.where((leaf == k)[:, None], scores[:, free], 0.0), subject)
        inverse = _sandwich(inverse, own, total)
    found = torch.zeros_like(each)
    for k, at in enumerate(places):
        found[k] = inverse[:size, :size]
        found[k][:, free] += inverse[:size, at]
        found[k][free] += inverse[at, :size]
        found[k][free[:, None], free] += inverse[at, at]
    return found.numpy()


def dense_covariance(
    problem: Problem,
    leaf: Tensor,  # (N,) on the host
    leaves: Tensor,  # (L, Q + K)
    strength: Tensor,  # (Q + K,) penalty of each parameter, on the scale of the mean loss
    total: float,
    subject: Tensor | None = None,  # (N,) codes from 0
) -> FloatArray | None:  # (L, Q + K, Q + K)
    """Covariance of the parameters of leaves that are fitted apart; None with too many of them."""
    if leaves.shape[-1] > MOST_PARAMETERS:
        return None
    problem, leaves = in_double(problem), leaves.double()
    each = information(problem, leaf, leaves) + torch.diag(strength.double().cpu())
    found = [_inverse(own) / total for own in each]
    if subject is not None:
        scores = row_scores(problem, leaf, leaves).cpu()
        parts = [torch.where((leaf == k)[:, None], scores, 0.0) for k in range(len(leaves))]
        found = [_sandwich(own, _by_subject(part, subject), total) for own, part in zip(found, parts, strict=True)]
    return torch.stack(found).numpy()


def row_scores(
    problem: Problem,
    leaf: Tensor,  # (N,)
    leaves: Tensor,  # (L, Q + K)
) -> Tensor:  # (N, Q + K)
    """Derivatives of each row's weighted loss by the parameters of its leaf."""
    q, leaf = problem.design.shape[-1], leaf.to(problem.design.device)
    offset = linear(leaves[None, :, :q], problem.design).gather(1, leaf[None, None])
    shape = leaves[None, :, q:]

    def slope(level: float, moved: Tensor) -> Tensor:
        """Central difference of the rows' losses, (N,)."""
        up = row_terms(problem, offset + level, shape + moved, leaf[None])[0]
        down = row_terms(problem, offset - level, shape - moved, leaf[None])[0]
        return ((up - down) / (2 * STEP))[0, 0]

    by_offset = slope(STEP, torch.zeros_like(shape))
    steps = STEP * torch.eye(shape.shape[-1], dtype=shape.dtype, device=shape.device)
    by_shape = [slope(0.0, step.expand_as(shape)) for step in steps]
    parts = [problem.design[0] * by_offset[:, None], *(own[:, None] for own in by_shape)]
    return torch.cat(parts, -1) * problem.weight[0, 0, :, None]


def _by_subject(scores: Tensor, subject: Tensor) -> Tensor:
    """Scores (N, D) added up for each subject, (S, D)."""
    return scores.new_zeros(int(subject.max()) + 1, scores.shape[-1]).index_add_(0, subject, scores)


def _sandwich(inverse: Tensor, scores: Tensor, total: float) -> Tensor:
    """The inverse Hessian of the likelihood (D, D) on both sides of the subjects' scores (S, D) of the mean loss."""
    pulled = total * scores @ inverse
    return pulled.mT @ pulled


def information(
    problem: Problem,
    leaf: Tensor,  # (N,) on the host
    leaves: Tensor,  # (L, Q + K)
) -> Tensor:  # (L, Q + K, Q + K) on the host
    """Second derivatives of the mean loss by each leaf's parameters, each row being in its leaf.

    Notes
    -----
    A row's loss depends on the features through its offset alone. Central differences of the gradient are therefore
    taken over the offset and over each shape parameter, for all leaves at once: 2 (1 + K) evaluations, whatever the
    number of features and leaves.
    """
    q, (n_leaves, size) = problem.design.shape[-1], leaves.shape
    free = LeafPenalties(NO_PENALTY, NO_PENALTY, NO_PENALTY)
    objective = LeafObjective(problem, leaf[None], n_leaves, free)
    at_row = objective.leaf
    offset = linear(leaves[None, :, :q], problem.design).gather(1, at_row[None])
    shape = leaves[None, :, q:]

    def slopes(level: float, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Weighted derivatives by the rows' offsets (N,) and by the shapes (L, K)."""
        _, found = row_terms(problem, offset + level, moved, at_row)
        by_offset, by_shape = objective.pulled(moved, found)
        return by_offset[0, 0], by_shape[0]

    level = (slopes(STEP, shape)[0] - slopes(-STEP, shape)[0]) / (2 * STEP)  # (N,)
    mixed = torch.zeros(len(leaf), size - q, dtype=leaves.dtype, device=leaves.device)
    own = torch.zeros(n_leaves, size - q, size - q, dtype=leaves.dtype, device=leaves.device)
    for k in range(size - q):
        step = torch.zeros_like(shape)
        step[..., k] = STEP
        up, down = slopes(0.0, shape + step), slopes(0.0, shape - step)
        mixed[:, k], own[:, :, k] = (up[0] - down[0]) / (2 * STEP), (up[1] - down[1]) / (2 * STEP)
    found = torch.zeros(n_leaves, size, size, dtype=leaves.dtype, device=leaves.device)
    for k in range(n_leaves):
        rows = torch.as_tensor(np.flatnonzero(leaf.numpy() == k)).to(leaves.device)
        x = problem.design[0, rows]
        found[k, :q, :q] = x.mT @ (level[rows, None] * x)
        found[k, :q, q:] = x.mT @ mixed[rows]
        found[k, q:, :q] = found[k, :q, q:].mT
        found[k, q:, q:] = own[k]
    return (0.5 * (found + found.mT)).cpu()


def _inverse(matrix: Tensor) -> Tensor:
    """Inverse of a symmetric matrix; flat and negative curvatures are raised to :data:`FLAT` of the largest."""
    size = matrix.diagonal().clamp(min=0).sqrt()
    size = torch.where(size > 0, size, 1.0)
    values, vectors = torch.linalg.eigh(matrix / size / size[:, None])
    values = values.clamp(min=FLAT * values.max().clamp(min=FLAT))
    return (vectors / values) @ vectors.mT / size / size[:, None]
