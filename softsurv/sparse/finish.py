"""From rules and leaf models to a soft tree: splits that change nothing are taken out, rules become routing weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.encoding import OutputColumn
from softsurv.numerics import spread
from softsurv.sparse.causes import Models, Problems, losses_of_causes
from softsurv.sparse.leaf_fit import leaf_models
from softsurv.sparse.many_levels import in_data_units
from softsurv.sparse.splits import SplitData
from softsurv.trees.linear_rule import TIE, LinearRule, Rules, answers_of, leaf_below, rows_at, tie_of
from softsurv.trees.routing import leaf_probability, linear
from softsurv.trees.soft_tree import SURE, SoftTree

LEAST_DIFFERENCE = 0.05
"""A split is kept if some training row's survival, or incidence of a cause, would differ by this much on the other
side, at some time up to the last event."""

GRID_TIMES = 20
"""Times, at quantiles of the events, at which survival on both sides is compared."""

BLOCK = 10_000
"""Rows whose curves are held at once."""

Curves = Callable[[IntArray], FloatArray]
"""From row numbers (n,) to the curves of these rows in every leaf, (L, n, T): survival, or the cumulative incidences of
all causes."""

SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Slopes of the log-odds that are tried, per standard deviation of a rule's score."""


@dataclass(frozen=True)
class Collapsed:
    """A split that was taken out: its rule, and the largest difference in survival that it made."""

    rule: LinearRule
    difference: float


def collapse(rules: Rules, data: SplitData, curves: Curves) -> tuple[Rules, list[Collapsed]]:
    """Take out splits that change no row's curves by :data:`LEAST_DIFFERENCE`, from the leaves up."""
    new, gone = list(rules), []
    answers = answers_of(rules, data.values)
    for node in range(len(rules) - 1, -1, -1):
        rule = new[node]
        if rule is None:
            continue
        at = np.flatnonzero(rows_at(answers, node))
        difference = _difference(answers, node, at, curves)
        if difference >= LEAST_DIFFERENCE:
            continue
        gone.append(Collapsed(rule, difference))
        new[node] = None
        answers[node] = True
        for below in _subtree(2 * node + 2, len(rules)):
            new[below] = None
    return tuple(new), gone[::-1]


def _difference(answers: BoolArray, node: int, at: IntArray, curves: Curves) -> float:
    """Largest difference that a split makes to a row; of many rows no more are looked at once it is large enough."""
    largest = 0.0
    for first in range(0, len(at), BLOCK):
        rows = at[first : first + BLOCK]
        left, right = (leaf_below(answers[:, rows], 2 * node + side) for side in (1, 2))
        here, place = curves(rows), np.arange(len(rows))
        largest = max(largest, float(np.abs(here[left, place] - here[right, place]).max()))
        if largest >= LEAST_DIFFERENCE:
            break
    return largest


def _subtree(node: int, n_branches: int) -> list[int]:
    """Branch nodes at and below a node."""
    if node >= n_branches:
        return []
    return [node, *_subtree(2 * node + 1, n_branches), *_subtree(2 * node + 2, n_branches)]


def shallower(rules: Rules, models: Models) -> tuple[Rules, Models]:
    """The same tree without levels in which no rule is left; the models (1, 1 + L, D) of its leaves with it."""
    while len(rules) and all(rule is None for rule in rules[len(rules) // 2 :]):
        rules = rules[: len(rules) // 2]
        models = tuple(torch.cat([model[:, :1], model[:, 1::2]], 1) for model in models)
    return rules, models


def soft_trees(
    problems: Problems,
    rules: Rules,
    models: Models,
    data: SplitData,
    columns: Sequence[OutputColumn],
    scale: FloatArray,
) -> tuple[SoftTree, ...]:
    """The torch module of each cause: rules as routing weights, with the sharpness of the best mixture likelihood.

    Parameters
    ----------
    problems : tuple of Problem
        For each cause the problem of one tree on all training rows.
    rules : tuple of LinearRule or None
    models : tuple of Tensor (1, 1 + L, Q + K)
        Common model and deviations.
    data : SplitData
    columns : sequence of OutputColumn
        Encoded features.
    scale : (P,)
        Factors of the problems' features (see `many_levels`).
    """
    depth = int(np.log2(len(rules) + 1))
    design, weight = problems[0].design, problems[0].weight[:, 0]
    tie = tie_of(design.dtype == torch.float64)
    routing = torch.as_tensor(routing_of(rules, data, columns, tie)).to(design)[None]
    losses = losses_of_causes(problems, models)

    def mixed(sharpness: float) -> Tensor:
        """Loss of the mixture with routing of this sharpness."""
        go_left = torch.sigmoid(linear(sharpened(routing, sharpness), design))  # no rule uses a column with a factor
        log_share = leaf_probability(go_left).clamp(min=1e-300).log()
        return -(weight * torch.logsumexp(log_share - losses, 1)).sum()

    chosen = SHARPNESS[-1]
    if any(rule is not None for rule in rules):
        tried = torch.stack([mixed(sharpness) for sharpness in SHARPNESS]).cpu().numpy()
        tried[np.isnan(tried)] = np.inf
        chosen = SHARPNESS[int(tried.argmin())] if tried.min() < np.inf else chosen
    routing, found = sharpened(routing, chosen), []
    for problem, model in zip(problems, in_data_units(models, scale), strict=True):
        leaves = leaf_models(model)
        tree = SoftTree(depth, len(columns), problem.family, 1, leaves.dtype).to(leaves.device)
        tree.rules = rules
        tree.load_state_dict({"routing": routing, "leaves": leaves, "time_scale": problem.time_scale[:1].to(leaves)})
        found.append(tree)
    return tuple(found)


def routing_of(rules: Rules, data: SplitData, columns: Sequence[OutputColumn], tie: float = TIE) -> FloatArray:
    """Routing weights (B, P + 1) of sharpness one per standard deviation of each rule's score."""
    out = np.zeros((len(rules), len(columns) + 1))
    for node, rule in enumerate(rules):
        if rule is None:
            out[node, 0] = SURE
        else:
            width = float(spread(rule.score(data.values)))
            out[node] = rule.routing(columns, 1 / width if width > 0 else 1.0, tie)
    return out


def sharpened(routing: Tensor, sharpness: float) -> Tensor:
    """Routing weights times a factor where they depend on the features."""
    asks = (routing[..., 1:] != 0).any(-1, keepdim=True)
    return torch.where(asks, sharpness * routing, routing)
