"""Pointwise confidence bands of a leaf's survival curves and of their quantiles, by the delta method."""

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
        value, by_shape, _ = _baseline(tree, number, times)  # (T,), (T, K)
        own, mixed, shape = covariance[k, :q, :q], covariance[k, :q, q:], covariance[k, q:, q:]
        d = design[rows]
        variance = np.einsum("nq,qr,nr->n", d, own, d)[:, None] + 2.0 * (d @ mixed) @ by_shape.T
        variance = variance + np.einsum("tk,kl,tl->t", by_shape, shape, by_shape)
        z = (d @ tree.leaves[0, number, :q].detach().double().cpu().numpy())[:, None] + value
        margin = half * np.sqrt(np.maximum(variance, 0.0))
        lower[rows], upper[rows] = (_survival(tree, edge) for edge in (z + margin, z - margin))
    return lower, upper


def quantile_limits(
    tree: SoftTree,
    leaf: int,
    covariance: FloatArray,  # (P + 1 + K, P + 1 + K) of the leaf
    x: torch.Tensor,  # (n, P) encoded
    times: FloatArray,  # (n,)
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limit of the times that are quantiles of some rows of a leaf, both (n,); nan at 0 and infinity.

    Notes
    -----
    Where z(t) of :func:`survival_band` is held, a change of the parameters moves log t by that of z over the slope of z
    in log t: log t has the standard error sd(z) / (dz / d log t), and the limits are t exp(-+ q error).
    """
    limits = np.full((2, len(times)), np.nan)
    inside = np.isfinite(times) & (times > 0.0)
    own = times[inside]
    _, by_shape, slope = _baseline(tree, leaf, own)
    gradient = np.concatenate([with_intercept(x.double().cpu()).numpy()[inside], by_shape], axis=1)  # (m, Q + K)
    variance = np.einsum("nq,qr,nr->n", gradient, covariance, gradient)
    with np.errstate(over="ignore"):  # where hardly anything is known the upper end is infinite
        ratio = np.exp(norm.ppf(0.5 + level / 2.0) * np.sqrt(np.maximum(variance, 0.0)) / slope)
        limits[:, inside] = own / ratio, own * ratio
    return limits[0], limits[1]


def _baseline(tree: SoftTree, leaf: int, times: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Baseline of a leaf at each time, (T,), its derivatives by the shape parameters, (T, K), and by log time, (T,)."""
    family, q = tree.family, tree.n_features + 1
    log_time = torch.as_tensor(np.ascontiguousarray(times)).to(tree.leaves).log()[:, None]  # (T, 1)
    features = family.time_features(log_time, tree.time_scale[:1])
    shape = tree.leaves[:1, leaf : leaf + 1, q:].detach().expand(len(times), 1, -1)
    value, log_slope = family.baseline(shape, features)
    by_shape = family.baseline_pullback(shape, features, torch.ones_like(value), torch.zeros_like(log_slope))
    slope = log_slope.double().exp() / float(tree.time_scale[0, 1])
    found = [part.double().cpu().numpy()[:, 0] for part in (value, by_shape, slope)]
    return found[0][:, 0], found[1], found[2][:, 0]


def _survival(tree: SoftTree, z: FloatArray) -> FloatArray:
    hazard, _, _ = tree.family.link.cumulative_hazard(torch.as_tensor(z))
    return np.asarray(torch.exp(-hazard).numpy())
