"""Where spline leaves begin: a Cox regression, then least squares (paper `sst`, section 5.1; Royston & Parmar 2002)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray
from softsurv.clamps import EXP_LIMIT
from softsurv.cox import fit_cox
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, warn
from softsurv.soft.problem import Problem
from softsurv.soft.starts import presumed_outcomes
from softsurv.trees.routing import linear
from softsurv.trees.topology import n_leaves

RIDGE = 0.1
"""Ridge on the coefficients of features, in Cox regression and in least squares. One-hot codes of a column are
collinear, and nearly collinear columns got coefficients of 1e12, from which training does not return."""

LEAST_SLOPE = 1e-3
"""Least coefficient of an increasing function, so that the slope is above zero and its logarithm finite."""

LEAST_HAZARD = 1e-8


def begin_spline_leaves(
    data: SurvivalData,
    problem: Problem,  # of these rows, and of all causes that count
    depth: int,
    seeds: Sequence[int],
    random: Tensor,  # (S, L, C (Q + K))
) -> Tensor:  # (S, L, C (Q + K))
    """Leaves of each start by Cox regression and least squares; random ones where these fail, as printed."""
    try:
        parts = zip(data.by_cause(), problem.of_causes, problem.blocks(random), strict=True)
        found = [within_limits(own, spline_leaves(part, own, depth, seeds), noise) for part, own, noise in parts]
        return torch.cat(found, -1)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as failure:
        warn(f"the Cox regression that spline leaves begin at failed ({failure}); they begin at random", DataWarning)
        return random


def spline_leaves(
    data: SurvivalData,
    problem: Problem,  # of these rows
    depth: int,
    seeds: Sequence[int],
) -> Tensor:  # (S, L, Q + K)
    """Parameters of the leaves of each start.

    Notes
    -----
    A Cox regression on all rows gives the cumulative hazard H of each event at its own time and features. For every
    leaf a share 1/L of the events is drawn with replacement, and log H (hazards) or log(exp(H) - 1) (odds) is
    regressed on the features and the increasing functions of log time, whose coefficients stay positive.
    Raises ``LinAlgError`` where the regression fails.
    """
    hazard, event = event_hazards(data)
    target = np.log(hazard) if problem.family.link.name == "proportional_hazards" else np.log(np.expm1(hazard))
    x = problem.design[0].double().cpu().numpy()[event]
    rise = problem.features[0, : problem.family.n_shape].double().cpu().numpy().T[event]
    leaves = n_leaves(depth)
    tables = []
    for seed in seeds:
        rng = np.random.default_rng([seed, 2])
        size = max(1, round(len(target) / leaves))
        drawn = [rng.integers(0, len(target), size) for _ in range(leaves)]
        tables.append([least_squares(x[rows], rise[rows], target[rows]) for rows in drawn])
    return torch.as_tensor(np.array(tables)).to(problem.design)


def within_limits(
    problem: Problem,
    leaves: Tensor,  # (S, L, Q + K)
    random: Tensor,  # (S, L, Q + K)
) -> Tensor:  # (S, L, Q + K)
    """The leaves, and random ones in the place of those whose hazard overflows at some row.

    In a deep tree a leaf is regressed on a handful of events. With as many features it may predict a hazard of exp(36)
    for other rows, and a search whose first step is the gradient does not return from there.
    """
    family, columns = problem.family, problem.design.shape[-1]
    if family.link.name != "proportional_hazards":  # a loss of odds grows with log H, not with H
        return leaves
    value, _ = family.baseline(leaves[..., columns:], problem.features)
    over = (linear(leaves[..., :columns], problem.design) + value > EXP_LIMIT).any(-1, keepdim=True)
    return torch.where(over, random, leaves)


def event_hazards(data: SurvivalData) -> tuple[FloatArray, BoolArray]:
    """Cumulative hazards by a Cox regression at the events (E,), and which rows those are (N,)."""
    x, (time, event) = data.x.numpy(), presumed_outcomes(data)
    cox = fit_cox(x, time, event, RIDGE)
    with np.errstate(over="ignore", invalid="ignore"):
        hazard = np.maximum(cox.hazard_at(time[event]) * np.exp(cox.log_risk(x[event])), LEAST_HAZARD)
    if not np.isfinite(hazard).all():
        raise FloatingPointError("a hazard is beyond all floats")
    return hazard, event


def least_squares(
    x: FloatArray,  # (n, Q) with a leading column of ones
    rise: FloatArray,  # (n, K) increasing functions of log time
    target: FloatArray,  # (n,)
) -> FloatArray:  # (Q + K,)
    """Coefficients of the features, then logarithms of the coefficients of the functions, which are positive.

    The ridge is written as further rows, one for each feature.
    """
    from scipy.optimize import lsq_linear

    free = np.full(x.shape[1], np.inf)
    ridge = RIDGE**0.5 * np.eye(x.shape[1])[1:]
    x = np.vstack([x, ridge])
    rise = np.vstack([rise, np.zeros((len(ridge), rise.shape[1]))])
    target = np.append(target, np.zeros(len(ridge)))
    lower = np.concatenate([-free, np.full(rise.shape[1], LEAST_SLOPE)])
    found = lsq_linear(np.hstack([x, rise]), target, (lower, np.inf)).x
    return np.concatenate([found[: x.shape[1]], np.log(np.maximum(found[x.shape[1] :], LEAST_SLOPE))])
