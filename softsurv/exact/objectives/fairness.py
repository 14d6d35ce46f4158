"""Group fairness as objectives of a tree: errors against the difference between groups in the share called positive.

Demographic parity asks |P(yhat = 1 | g) - P(yhat = 1 | h)| <= tolerance for any two groups, equality of opportunity the
same among the positives, P(yhat = 1 | y = 1, g) (paper `streed`, section 4.4, eq. 11, 70). A leaf called positive adds
n_g / N_g to the share of group g, so the shares add over leaves and the constraint is a threshold on sums. For two
groups the objectives are (errors, N_h n_g - N_g n_h): whole numbers, so that equal differences are recognised.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.objectives.linear import LINEAR
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.vector_task import objectives

Fairness = Literal["demographic_parity", "equality_of_opportunity"]
KINDS: tuple[Fairness, ...] = ("demographic_parity", "equality_of_opportunity")

ROUNDING = 1e-9
"""A difference above the tolerance by this relative amount still meets it: shares are ratios of sums."""


def fair_search(
    codes: NDArray[np.integer],
    n_codes: NDArray[np.integer],
    nominal: BoolArray,
    label: NDArray[np.integer],
    group: NDArray[np.integer],
    kind: Fairness,
    tolerance: float,
    depth: int,
    *,
    weight: FloatArray | None = None,
    complexity: float = 0.0,
    leaves: int | None = None,
    **how: Any,
) -> VectorSearch:
    """The search for the most accurate two-class tree under a fairness constraint.

    Parameters
    ----------
    codes, n_codes, nominal
        As in `Search`.
    label : (N,) 0 or 1
    group : (N,) int
        0 .. G - 1.
    kind : {"demographic_parity", "equality_of_opportunity"}
    tolerance : float
        Largest difference between the shares of any two groups.
    depth : int
    weight : (N,), optional
    complexity : float
        Errors that a leaf must save.
    leaves : int, optional
        Most leaves; they become a further objective, limited like the difference.
    **how
        As in `VectorSearch`.

    Raises
    ------
    InvalidParameterError
        A group has no rows, or none of the positive class for ``"equality_of_opportunity"``.
    """
    label, group = np.asarray(label), np.asarray(group)
    n_groups = int(group.max()) + 1
    w = np.ones(len(label)) if weight is None else np.asarray(weight, dtype=float)
    counts = label == 1 if kind == "equality_of_opportunity" else np.ones(len(label), bool)
    of_group: FloatArray = np.asarray(np.bincount(group[counts], w[counts], n_groups), dtype=float)
    if (of_group == 0).any():
        raise InvalidParameterError(
            f"group {int(of_group.argmin())} must have rows{' of the positive class' if not counts.all() else ''} for "
            f"{kind!r}; merge groups or choose another constraint"
        )
    kind_of_row = label * n_groups + group  # statistics: rows of each class in each group
    statistics = np.zeros((len(label), 2 * n_groups))
    statistics[np.arange(len(label)), kind_of_row] = w
    share = share_weights(n_groups, kind, of_group)
    weights = np.zeros((2, 1 + len(share), 2 * n_groups))
    weights[0, 0, n_groups:] = weights[1, 0, :n_groups] = 1.0
    weights[1, 1:] = share
    constraint, limit = difference_constraint(n_groups, of_group, tolerance)
    goals = objectives(
        LINEAR, weights, [False, *[True] * len(share)], constant=[complexity, *np.zeros(len(share))],
        constraint=constraint, limit=limit,
    )  # fmt: skip
    if leaves is not None and leaves < 1 << depth:
        goals = goals.with_most_leaves(leaves)
    return VectorSearch(goals, codes, n_codes, nominal, statistics, depth, lists=True, cuts=True, **how)


def share_weights(n_groups: int, kind: Fairness, size: FloatArray) -> FloatArray:
    """What a positive leaf adds to the kept objectives per statistic: scaled difference, or each group's share."""
    by_group = np.diag(1 / size) if n_groups != 2 else np.array([[-size[1], size[0]]])
    negatives = np.zeros_like(by_group) if kind == "equality_of_opportunity" else by_group
    return np.hstack([negatives, by_group])


def difference_constraint(n_groups: int, size: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Rows (C, 1 + kept objectives) and limits (C,): no two groups differ by more than the tolerance."""
    if n_groups == 2:
        limit = (tolerance * (1 + ROUNDING) + 1e-12) * size[0] * size[1]
        return np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([limit, limit])
    pairs = [(g, h) for g in range(n_groups) for h in range(n_groups) if g != h]
    rows = np.zeros((len(pairs), 1 + n_groups))
    for row, (g, h) in zip(rows, pairs, strict=True):
        row[1 + g], row[1 + h] = 1.0, -1.0
    return rows, np.full(len(pairs), tolerance * (1 + ROUNDING) + 1e-12)


def difference(prediction: NDArray[np.integer], label: NDArray[np.integer], group: NDArray[np.integer], kind: Fairness,
               weight: FloatArray | None = None) -> float:  # fmt: skip
    """Largest difference between two groups in the share of rows called positive."""
    w = np.ones(len(label)) if weight is None else weight
    counts = label == 1 if kind == "equality_of_opportunity" else np.ones(len(label), bool)
    g, w, yes = group[counts], w[counts], prediction[counts] == 1
    size = np.bincount(g, w)
    share = np.bincount(g, w * yes, len(size))[size > 0] / size[size > 0]
    return float(share.max() - share.min())
