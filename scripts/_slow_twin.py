"""NODEC-DR for one soft survival tree, plainly: numpy, scipy's SLSQP and sklearn's logistic regression.

Written from the paper (`sst`: section 4, Appendix C) for log-logistic leaves, with the thresholds in the order that
the text wants (moderate 0.3, high 0.1). The slow twin of `softsurv.soft`: one tree at a time, nothing shared
with it but the formula of the objective and the layout of the parameters.

Sizes: N rows, Q features with the leading ones, B branch nodes in heap order, L leaves from left to right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MACRO_ITERATIONS = 10
MODERATE, HIGH, SWAP, DECAY = 0.3, 0.1, 0.4, 0.8
PATIENCE, TOLERANCE = 3, 1e-4
"""Early stopping: macro iterations without a relative improvement of the best objective."""


@dataclass(frozen=True)
class Rows:
    """Training rows, and what the objective needs beside them."""

    x: Array  # (N, Q)
    y: Array  # (N,) standardised log time
    event: Array  # (N,) 0 or 1
    l2: float
    total: int  # N of the whole training set, also where these rows are a part of it

    def part(self, here: Mask) -> Rows:
        """Some of the rows."""
        return Rows(self.x[here], self.y[here], self.event[here], self.l2, self.total)


def leaf_losses(leaves: Array, rows: Rows) -> tuple[Array, Array]:
    """Negative log-likelihood of every row in every leaf and its slope in z, both (L, N).

    z = a0 + a.x + exp(shape) y is the log odds of the event: NLL = (1 + c) log(1 + e^z) - c (z + shape).
    """
    shape = leaves[:, -1:]
    z = leaves[:, :-1] @ rows.x.T + np.exp(shape) * rows.y
    small = np.exp(-np.abs(z))
    probability = np.where(z >= 0, 1.0, small) / (1 + small)
    loss = (1 + rows.event) * (np.log1p(small) + np.maximum(z, 0)) - rows.event * (z + shape)
    return loss, (1 + rows.event) * probability - rows.event


def reach_of_levels(routing: Array, x: Array) -> tuple[Array, list[Array]]:
    """Probability of going left at each branch node of a complete subtree (B, N), and of passing the nodes of each
    level, the leaves last."""
    z = routing @ x.T
    small = np.exp(-np.abs(z))
    left, reach = np.where(z >= 0, 1.0, small) / (1 + small), [np.ones((1, len(x)))]
    for nodes in _levels(len(routing)):
        below = np.empty((2 * len(left[nodes]), len(x)))
        below[::2] = reach[-1] * left[nodes]
        below[1::2] = reach[-1] - below[::2]
        reach.append(below)
    return left, reach


def expected_loss(routing: Array, leaf_loss: Array, x: Array) -> Array:
    """Loss of each row in expectation over the leaves of a complete subtree, (N,)."""
    return (reach_of_levels(routing, x)[1][-1] * leaf_loss).sum(0)


def objective(routing: Array, leaves: Array, rows: Rows) -> float:
    """Equation (5), with the penalty on the leaves' coefficients alone."""
    loss = expected_loss(routing, leaf_losses(leaves, rows)[0], rows.x).sum()
    return float(loss / rows.total + 0.5 * rows.l2 * (leaves[:, 1:-1] ** 2).sum())


def branch_objective(w: Array, leaf_loss: Array, rows: Rows) -> float:
    """Restricted objective over the branch nodes of a complete subtree."""
    return float(expected_loss(w.reshape(len(leaf_loss) - 1, -1), leaf_loss, rows.x).sum() / rows.total)


def branch_objective_and_gradient(w: Array, leaf_loss: Array, rows: Rows) -> tuple[float, Array]:
    """The same with its gradient: reach p (1 - p) (loss on the left - loss on the right) at each node."""
    left, reach = reach_of_levels(w.reshape(len(leaf_loss) - 1, -1), rows.x)
    slopes, cost = np.empty_like(left), leaf_loss
    for level, nodes in reversed(list(enumerate(_levels(len(left))))):
        p, difference = left[nodes], cost[::2] - cost[1::2]
        slopes[nodes] = reach[level] * p * (1 - p) * difference
        cost = cost[1::2] + p * difference
    return float(cost.sum() / rows.total), (slopes @ rows.x).ravel() / rows.total


def leaf_objective(b: Array, reach: Array, rows: Rows) -> float:
    """Restricted negative log-likelihood over leaves that each row weighs by ``reach`` (L, N)."""
    leaves = b.reshape(len(reach), -1)
    loss = (reach * leaf_losses(leaves, rows)[0]).sum() / rows.total
    return float(loss + 0.5 * rows.l2 * (leaves[:, 1:-1] ** 2).sum())


def leaf_objective_and_gradient(b: Array, reach: Array, rows: Rows) -> tuple[float, Array]:
    """The same with its gradient."""
    leaves = b.reshape(len(reach), -1)
    loss, slope = leaf_losses(leaves, rows)
    slope = reach * slope
    of_shape = np.exp(leaves[:, -1]) * (slope @ rows.y) - reach @ rows.event
    gradient = np.column_stack([slope @ rows.x, of_shape]) / rows.total
    gradient[:, 1:-1] += rows.l2 * leaves[:, 1:-1]
    value = (reach * loss).sum() / rows.total + 0.5 * rows.l2 * (leaves[:, 1:-1] ** 2).sum()
    return float(value), gradient.ravel()


def nodec_dr(routing: Array, leaves: Array, rows: Rows, analytic: bool) -> tuple[Array, Array, float]:
    """Best parameters (B, Q), (L, Q + 1) of one tree from one start, and their objective.

    With ``analytic`` SLSQP gets the gradients; otherwise it takes finite differences.
    """
    n_branches, routing, leaves = len(routing), routing.copy(), leaves.copy()
    best = (routing.copy(), leaves.copy(), objective(routing, leaves, rows))
    thresholds, waited = np.array([MODERATE, HIGH, SWAP]), 0
    for _ in range(MACRO_ITERATIONS):
        before = best[2]
        for node in range(n_branches):
            here = _passes(routing, node, rows.x)
            if not here.any():
                continue
            _branch_step(routing, leaves, node, rows.part(here), thresholds, analytic)
            if node > 0 or n_branches == 1:
                _leaf_step(routing, leaves, node, rows.part(here), analytic)
            value = objective(routing, leaves, rows)
            if value < best[2]:
                best = (routing.copy(), leaves.copy(), value)
        thresholds = DECAY * thresholds
        waited = 0 if before - best[2] > TOLERANCE * max(1.0, abs(before)) else waited + 1
        if waited == PATIENCE:
            break
    return best


def _branch_step(routing: Array, leaves: Array, node: int, rows: Rows, thresholds: Array, analytic: bool) -> None:
    """UpdateBranchNode (Appendix C.0.2), in place."""
    moderate, high, swap = thresholds
    below, at_leaves = _subtree(node, len(routing))
    leaf_loss = leaf_losses(leaves[at_leaves], rows)[0]
    left = rows.x @ routing[node] >= 0
    share = float(left.mean())
    smaller = min(share, 1 - share)
    if smaller <= moderate and moderate * rows.total >= 1:
        labels = left
        if smaller <= high:
            labels = _swap_worst(left, share, expected_loss(routing[below], leaf_loss, rows.x), swap)
        if labels.any() and not labels.all():
            routing[node] = _weighted_logistic_regression(rows.x, labels, share)
        return
    if node == 0 and len(routing) > 1:  # the root alone: what lies below it is a constant on either side
        sides = zip((1, 2), np.split(leaf_loss, 2), strict=True)
        leaf_loss = np.stack([expected_loss(routing[_subtree(s, len(routing))[0]], loss, rows.x) for s, loss in sides])
        below = [0]
    function = branch_objective_and_gradient if analytic else branch_objective
    routing[below] = _slsqp(function, routing[below], leaf_loss, rows, analytic)


def _leaf_step(routing: Array, leaves: Array, node: int, rows: Rows, analytic: bool) -> None:
    """Maximum likelihood over the leaves below a node, in place."""
    below, at_leaves = _subtree(node, len(routing))
    reach = reach_of_levels(routing[below], rows.x)[1][-1]
    function = leaf_objective_and_gradient if analytic else leaf_objective
    leaves[at_leaves] = _slsqp(function, leaves[at_leaves], reach, rows, analytic)


def _slsqp(function: Callable, start: Array, table: Array, rows: Rows, analytic: bool) -> Array:
    """SLSQP with scipy's default settings; the start where it leaves the finite numbers."""
    with np.errstate(all="ignore"):
        result = minimize(function, start.ravel(), (table, rows), "SLSQP", jac=True if analytic else None)
    finite = np.isfinite(result.x).all() and np.isfinite(result.fun)
    return result.x.reshape(start.shape) if finite else start


def _weighted_logistic_regression(x: Array, labels: Mask, share: float) -> Array:
    """Problem (8) by sklearn's default solver and settings; intercept first."""
    tiny = 1 / len(x)
    weight = np.where(labels, 0.5 / max(share, tiny), 0.5 / max(1 - share, tiny))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression().fit(x[:, 1:], labels, sample_weight=weight)
    return np.concatenate([model.intercept_, model.coef_[0]])


def _swap_worst(left: Mask, share: float, error: Array, swap: float) -> Mask:
    """Classes with those rows of the big child swapped that have the largest terms (9)."""
    big = np.flatnonzero(left == (share >= 0.5))
    count = min(int(np.ceil(swap * len(left))), len(big) - 1)
    labels = left.copy()
    worst = big[np.argsort(-error[big])[:count]]
    labels[worst] = ~labels[worst]
    return labels


def _passes(routing: Array, node: int, x: Array) -> Mask:
    """Rows whose path of highest branch probability passes the node, (N,)."""
    here = np.ones(len(x), dtype=bool)
    while node:
        parent = (node - 1) // 2
        here &= (x @ routing[parent] >= 0) == (node % 2 == 1)
        node = parent
    return here


def _subtree(node: int, n_branches: int) -> tuple[list[int], slice]:
    """Branch nodes of the subtree in its own heap order, and its leaves."""
    level, nodes = [node], []
    while level[0] < n_branches:
        nodes += level
        level = [child for parent in level for child in (2 * parent + 1, 2 * parent + 2)]
    return nodes, slice(level[0] - n_branches, level[-1] - n_branches + 1)


def _levels(n_branches: int) -> list[slice]:
    """Branch nodes of every level of a complete tree, the root first."""
    return [slice(2**k - 1, 2 ** (k + 1) - 1) for k in range((n_branches + 1).bit_length() - 1)]
