"""From rules and leaf models to a soft tree: splits that change nothing go, routing probabilities come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn
from softsurv.soft.problem import Problem
from softsurv.sparse.leaf_fit import leaf_models, losses_in_leaves
from softsurv.sparse.splits import SplitData
from softsurv.trees.linear_rule import LinearRule, Rules, answers_of, leaf_below, rows_at
from softsurv.trees.routing import leaf_probability, linear
from softsurv.trees.soft_tree import SURE, SoftTree

LEAST_DIFFERENCE = 0.05
"""A split matters where some training row's survival probability would differ by this much on its other side, at some
time up to the last event."""

GRID_TIMES = 20
"""Times, at quantiles of the events, at which survival on both sides is compared."""

SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Slopes of the log-odds tried, per standard deviation of a rule's score."""


@dataclass(frozen=True)
class Collapsed:
    """A split that was taken out: its rule, and the largest difference in survival that it made."""

    rule: LinearRule
    difference: float


def survival_in_leaves(problem: Problem, leaves: Tensor, features: Tensor) -> Tensor:
    """Survival of every row in every leaf of one tree, (L, N, T), at times given by their features (1, F, T)."""
    family, q = problem.family, problem.design.shape[-1]
    offset = linear(leaves[..., :q], problem.design)[0]  # (L, N)
    rise = family.baseline(leaves[..., q:], features)[0][0]  # (L, T)
    return torch.exp(-family.link.cumulative_hazard(offset[..., None] + rise[:, None])[0])


def collapse(rules: Rules, data: SplitData, survival: Tensor) -> tuple[Rules, list[Collapsed]]:
    """Take out splits that change no row's survival (L, N, T) by :data:`LEAST_DIFFERENCE`, from the leaves up."""
    new, gone = list(rules), []
    answers = answers_of(rules, data.values)
    for node in range(len(rules) - 1, -1, -1):
        rule = new[node]
        if rule is None:
            continue
        at = np.flatnonzero(rows_at(answers, node))
        difference = 0.0
        if len(at):
            left, right = (torch.as_tensor(leaf_below(answers[:, at], 2 * node + side)) for side in (1, 2))
            rows = torch.as_tensor(at)
            difference = float((survival[left, rows] - survival[right, rows]).abs().max())
        if difference >= LEAST_DIFFERENCE:
            continue
        gone.append(Collapsed(rule, difference))
        new[node] = None
        answers[node] = True
        for below in _subtree(2 * node + 2, len(rules)):
            new[below] = None
    return tuple(new), gone[::-1]


def _subtree(node: int, n_branches: int) -> list[int]:
    """Branch nodes at and below a node."""
    if node >= n_branches:
        return []
    return [node, *_subtree(2 * node + 1, n_branches), *_subtree(2 * node + 2, n_branches)]


def shallower(rules: Rules, leaves: FloatArray) -> tuple[Rules, FloatArray]:
    """The same tree without levels in which no rule is left; leaves (L, D) with it."""
    while len(rules) and all(rule is None for rule in rules[len(rules) // 2 :]):
        rules, leaves = rules[: len(rules) // 2], leaves[::2]
    return rules, leaves


def soft_tree(
    problem: Problem, rules: Rules, model: Tensor, data: SplitData, columns: Sequence[OutputColumn]
) -> SoftTree:
    """The torch module of one tree: rules as routing weights, as sharp as the mixture's likelihood wants them.

    Parameters
    ----------
    problem : Problem
        Of one tree, all training rows.
    rules : tuple of LinearRule or None
    model : Tensor (1, 1 + L, Q + K)
        Common model and deviations.
    data : SplitData
    columns : sequence of OutputColumn
        Encoded features.
    """
    leaves = leaf_models(model)
    depth = int(np.log2(len(rules) + 1))
    tree = SoftTree(depth, len(columns), problem.family, 1, leaves.dtype)
    unit = _routing(rules, data, columns)
    routing = torch.as_tensor(unit).to(leaves)[None]
    losses = losses_in_leaves(problem, leaves)
    best, chosen = np.inf, SHARPNESS[-1]
    for sharpness in SHARPNESS if any(rule is not None for rule in rules) else ():
        go_left = torch.sigmoid(linear(_sharpened(routing, sharpness), problem.design))
        log_share = leaf_probability(go_left, depth).clamp(min=1e-300).log()
        loss = -(problem.weight[:, 0] * torch.logsumexp(log_share - losses, 1)).sum()
        if float(loss) < best:
            best, chosen = float(loss), sharpness
    tree.rules = rules
    tree.load_state_dict(
        {"routing": _sharpened(routing, chosen), "leaves": leaves, "time_scale": problem.time_scale[:1].to(leaves)}
    )
    return tree


def _routing(rules: Rules, data: SplitData, columns: Sequence[OutputColumn]) -> FloatArray:
    """Routing weights (B, P + 1) of sharpness one per standard deviation of each rule's score."""
    out = np.zeros((len(rules), len(columns) + 1))
    for node, rule in enumerate(rules):
        if rule is None:
            out[node, 0] = SURE
        else:
            spread = float(rule.score(data.values).std())
            out[node] = rule.routing(columns, 1 / spread if spread > 0 else 1.0)
    return out


def _sharpened(routing: Tensor, sharpness: float) -> Tensor:
    """Routing weights times a factor where they depend on the features."""
    asks = (routing[..., 1:] != 0).any(-1, keepdim=True)
    return torch.where(asks, sharpness * routing, routing)
