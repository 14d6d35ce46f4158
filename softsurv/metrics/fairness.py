"""Group fairness of survival curves and of the leaves that give them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.metrics.ranges import checked_probabilities, checked_times
from softsurv.nonparametric import checked_weight


class CurveGap(NamedTuple):
    """Distance between the mean survival curves of a group and of the others.

    Attributes
    ----------
    largest : float
        Greatest absolute difference on the grid.
    mean : float
        Absolute difference, averaged over time.
    signed : float
        Group minus others, averaged over time.
    """

    largest: float
    mean: float
    signed: float


class LeafGini(NamedTuple):
    """How mixed the groups are in the leaves: 0 = one group only, 1 = all groups equally.

    Attributes
    ----------
    by_leaf : ndarray (number of leaves in use,)
        By rising leaf index.
    mean : float
        Over these leaves.
    weighted : float
        The same, weighted by the number of subjects in a leaf, or by their weight.
    """

    by_leaf: FloatArray
    mean: float
    weighted: float


def fairness_penalty(
    survival: ArrayLike, times: ArrayLike, group: ArrayLike, per_pair: bool = False, weight: ArrayLike | None = None
) -> float:
    """Sum of squared distances between the curves of a group and those of the others.

    Parameters
    ----------
    survival : array_like, shape (N, T)
        Predicted survival probabilities.
    times : array_like, shape (T,)
        Grid of the columns, strictly increasing; the paper's integral uses the training times.
    group : array_like of bool, shape (N,)
        True for members of the sensitive group.
    per_pair : bool
        Divide by the number of pairs |G| (N - |G|).
    weight : array_like, shape (N,), optional
        Sample weights >= 0: a pair counts as the product of its two.

    Returns
    -------
    float
        In the unit of time.

    Notes
    -----
    sum over i in G, j not in G of int (S_i(t) - S_j(t))^2 dt, the integral by the trapezoidal rule.
    At each time the double sum is |A| |B| (var_A + var_B + (mean_A - mean_B)^2): O(N T), and free of
    cancellation.

    References
    ----------
    Paper `sst`, eq. 3.
    """
    curves, grid, sides = _checked(survival, times, group, weight)
    inside, others = (side / side.sum() @ curves for side in sides)
    within = [side / side.sum() @ (curves - mean) ** 2 for side, mean in zip(sides, (inside, others), strict=True)]
    distance = sum(within) + (inside - others) ** 2
    n_pairs = 1.0 if per_pair else sides[0].sum() * sides[1].sum()
    return float(n_pairs * np.trapezoid(distance, grid))


def curve_gap(survival: ArrayLike, times: ArrayLike, group: ArrayLike, weight: ArrayLike | None = None) -> CurveGap:
    """Compare the mean survival curve of a group with that of the others; arguments as in `fairness_penalty`.

    Returns
    -------
    CurveGap
        Probabilities; time averages by the trapezoidal rule over the grid.
    """
    curves, grid, (inside, others) = _checked(survival, times, group, weight)
    gap = inside / inside.sum() @ curves - others / others.sum() @ curves  # (T,)
    span = grid[-1] - grid[0]
    return CurveGap(
        float(np.abs(gap).max()),
        float(np.trapezoid(np.abs(gap), grid) / span),
        float(np.trapezoid(gap, grid) / span),
    )


def leaf_gini(leaf: ArrayLike, group: ArrayLike, weight: ArrayLike | None = None) -> LeafGini:
    """Normalised Gini impurity of the groups in every leaf.

    Parameters
    ----------
    leaf : array_like of int, shape (N,)
        Leaf of every subject.
    group : array_like, shape (N,)
        Group labels, at least two different ones.
    weight : array_like, shape (N,), optional
        Sample weights >= 0; leaves of weight 0 are not in use.

    Notes
    -----
    Per leaf K / (K - 1) (1 - sum_k p_k^2) for K groups: the scale of paper `sst`, section 5.4, where 1 is
    an equal distribution and 0 the greatest imbalance.
    """
    leaves, groups = np.asarray(leaf), np.asarray(group)
    if leaves.ndim != 1 or leaves.shape != groups.shape or leaves.size == 0:
        raise InvalidParameterError(
            f"leaf and group must hold one value per subject, got shapes {leaves.shape} and {groups.shape}"
        )
    mass = checked_weight(weight, leaves.shape)
    leaves, groups, mass = leaves[mass > 0], groups[mass > 0], mass[mass > 0]
    leaf_labels, row = np.unique(leaves, return_inverse=True)
    labels, column = np.unique(groups, return_inverse=True)
    if labels.size < 2:
        raise InvalidParameterError(f"group must hold at least two different labels, got {labels.tolist()}")
    counts = np.zeros((leaf_labels.size, labels.size))
    np.add.at(counts, (row, column), mass)
    size = counts.sum(axis=1)
    shares = counts / size[:, None]
    gini = labels.size / (labels.size - 1) * (1.0 - np.sum(shares**2, axis=1))
    return LeafGini(gini, float(gini.mean()), float(gini @ size / size.sum()))


def _checked(
    survival: ArrayLike, times: ArrayLike, group: ArrayLike, weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Curves (N, T), grid (T,), and weights (N,) of the rows as members and as others."""
    grid = checked_times(times)
    member = np.asarray(group)
    if member.ndim != 1 or (member.dtype != bool and not np.isin(member, (0, 1)).all()):
        raise InvalidParameterError(
            "group must be one column of True/False or 1/0; compare the labels with the sensitive one first"
        )
    inside = checked_weight(weight, member.shape) * member.astype(bool)
    others = checked_weight(weight, member.shape) * ~member.astype(bool)
    if not inside.any() or not others.any():
        raise InvalidParameterError("group must mark some subjects and leave others, got all or none marked")
    if grid.size < 2:
        raise InvalidParameterError(
            "times must hold at least two values to integrate over, got one; "
            "give more, or fit a tree to events at several times, whose times are the default"
        )
    curves = checked_probabilities("survival", survival, member.size, grid.size)
    return curves, grid, (inside, others)
