"""The cost of rules of few terms: the likelihood of a tree of rules beside that of a dense tree of the same size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softsurv.data.survival_data import SurvivalData
from softsurv.soft.fit import fit_tree
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import Problem
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.sparse.leaf_fit import LeafPenalties, fit_leaves, row_terms
from softsurv.sparse.prefer import CONSTANT
from softsurv.trees.routing import linear
from softsurv.trees.soft_tree import SoftTree

ROUTING_L2 = 0.1
"""Penalty of the dense tree's routing weights: the weaker one of those that a dense fit tries."""

ROUNDS = LbfgsSettings(max_iterations=60, ftol=1e-6)
"""The dense tree is trained as far as a validated one."""

MOST_CELLS = 1_000_000
"""Most rows times encoded features times leaves. Above this the dense tree takes seconds, too long for a by-product."""


@dataclass(frozen=True)
class LostLikelihood:
    """Mean log-likelihood of the training rows, per unit of standardised log time.

    Attributes
    ----------
    one_curve : float
        One curve for all rows.
    rules, dense : float
        The tree of rules; a dense tree of the same depth, whose leaves are fitted with the same penalties.
    """

    one_curve: float
    rules: float
    dense: float

    @property
    def share(self) -> float:
        """Share that the rules lose of the dense tree's gain over one curve; below 0 where the rules gain more."""
        gain = self.dense - self.one_curve
        return (self.dense - self.rules) / gain if gain > 0 else 0.0


def lost_likelihood(
    data: SurvivalData, problem: Problem, tree: SoftTree, leaf: Tensor, penalties: LeafPenalties, machine: Machine
) -> LostLikelihood | None:
    """Train a dense tree that begins at the rules, or at a log-rank tree where that ends better, and compare.

    Parameters
    ----------
    data : SurvivalData
        The training rows, encoded.
    problem : Problem
        The problem of these rows.
    tree : SoftTree
        The tree of rules.
    leaf : Tensor (1, N)
        Leaf of each row by the rules.
    penalties : LeafPenalties
        Penalties of the leaves.
    machine : Machine

    Returns
    -------
    LostLikelihood, optional
        None where it would cost too much (:data:`MOST_CELLS`), or time is up.
    """
    cells = problem.design.shape[-2] * problem.design.shape[-1] * 2**tree.depth
    if cells > MOST_CELLS or (machine.budget is not None and machine.budget.exhausted):
        return None
    ridge, shrinkage = (float(part[0]) * data.n for part in (penalties.ridge, penalties.baseline))
    candidate = Candidate(problem.family.name, tree.depth, ridge, shrinkage, ROUTING_L2)
    start = tree.routing[0].detach().double().cpu().numpy()
    dense, _ = fit_tree(data, Recipe(problem.family, candidate, (start, "logrank"), Training(joint=ROUNDS)), machine)
    with torch.no_grad():
        other = dense.apply_leaf(data.x.to(dense.leaves))
    leaf = leaf.to(other.device)
    alone = torch.zeros_like(leaf)
    flat = LeafPenalties(torch.full_like(penalties.ridge, CONSTANT), penalties.baseline, penalties.slopes)
    found = (
        _log_likelihood(problem, alone, 1, flat),
        _log_likelihood(problem, leaf, 2**tree.depth, penalties),
        _log_likelihood(problem, other, 2**tree.depth, penalties),
    )
    return LostLikelihood(*torch.stack(found).tolist())


def _log_likelihood(problem: Problem, leaf: Tensor, n_leaves: int, penalties: LeafPenalties) -> Tensor:
    """Mean log-likelihood () of the rows in leaves that are fitted to them."""
    q, model = problem.design.shape[-1], fit_leaves(problem, leaf, n_leaves, penalties).point[0]
    leaves = model[:, :1] + model[:, 1:]
    offset = linear(leaves[..., :q], problem.design).gather(1, leaf[:, None])
    weight = problem.weight
    loss = row_terms(problem, offset, leaves[..., q:], leaf)[0]
    return -(loss * weight).sum() / weight.sum()
