"""Pointwise confidence bands of a leaf's survival curves, by the delta method."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm

from softsurv.arrays import FloatArray, IntArray
from softsurv.numerics import with_intercept
from softsurv.trees.soft_tree import SoftTree


def survival_band(
    tree: SoftTree,
    covariance: FloatArray,  # (L, P + 1 + K, P + 1 + K) of the leaves that rows reach
    leaf: IntArray,  # (n,) among these leaves
    x: torch.Tensor,  # (n, P) encoded
    times: FloatArray,  # (T,) > 0
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limit of S(t | x) at each time, both (n, T).

    Notes
    -----
    A leaf's curve is S = exp(-H(z)) with z = b.(1, x) + s(log t; shape). Its variance is g' V g with
    g = (1, x, ds/dshape) and V the inverse Hessian of the penalised likelihood, given the rules. The band is
    z -+ q sd(z), taken through H: it stays within 0 and 1 and does not depend on the scale that the curve is drawn on.
    """
    design = with_intercept(x.double().cpu()).numpy()  # (n, Q)
    half, q = norm.ppf(0.5 + level / 2.0), design.shape[1]
    lower, upper = np.empty((len(leaf), len(times))), np.empty((len(leaf), len(times)))
    for k in np.unique(leaf):
        rows, number = np.flatnonzero(leaf == k), int(tree.used_leaves[k])
        value, slope = _baseline(tree, number, times)  # (T,), (T, K)
        own, mixed, shape = covariance[k, :q, :q], covariance[k, :q, q:], covariance[k, q:, q:]
        d = design[rows]
        variance = np.einsum("nq,qr,nr->n", d, own, d)[:, None] + 2.0 * (d @ mixed) @ slope.T
        variance = variance + np.einsum("tk,kl,tl->t", slope, shape, slope)
        z = (d @ tree.leaves[0, number, :q].detach().double().cpu().numpy())[:, None] + value
        margin = half * np.sqrt(np.maximum(variance, 0.0))
        lower[rows], upper[rows] = (_survival(tree, edge) for edge in (z + margin, z - margin))
    return lower, upper


def _baseline(tree: SoftTree, leaf: int, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Baseline of a leaf at each time, (T,), and its derivatives by the shape parameters, (T, K)."""
    family, q = tree.family, tree.n_features + 1
    log_time = torch.as_tensor(np.ascontiguousarray(times)).to(tree.leaves).log()[:, None]  # (T, 1)
    features = family.time_features(log_time, tree.time_scale[:1])
    shape = tree.leaves[:1, leaf : leaf + 1, q:].detach().expand(len(times), 1, -1)
    value, log_slope = family.baseline(shape, features)
    by_shape = family.baseline_pullback(shape, features, torch.ones_like(value), torch.zeros_like(log_slope))
    return value.double().cpu().numpy()[:, 0, 0], by_shape.double().cpu().numpy()[:, 0]


def _survival(tree: SoftTree, z: FloatArray) -> FloatArray:
    hazard, _, _ = tree.family.link.cumulative_hazard(torch.as_tensor(z))
    return np.asarray(torch.exp(-hazard).numpy())
