"""NODEC-DR: node-based decomposition with reassignment, for a stack of trees (paper `sst`, section 4 and Appendix C).

All working sets of one level are solved at once: with the branch nodes above the level routing by their HBP,
the rows and the parameters of two subtrees of the same level are disjoint, so this equals solving them in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from softsurv.soft.bfgs import BfgsSettings, Inner, room_for
from softsurv.soft.logistic import fit_logistic
from softsurv.soft.newton import NewtonSettings
from softsurv.soft.objective import Objective
from softsurv.soft.problem import taken
from softsurv.soft.restricted import fit_branches, fit_leaves
from softsurv.soft.watch import Watch, runs_ahead
from softsurv.stopping import StopSignal
from softsurv.trees.routing import hbp_leaf
from softsurv.trees.topology import level_slice, n_branches

CLASS_RIDGE = 1e-3
"""Ridge of the weighted logistic regression: its classes come from a linear rule, so without it they separate."""


@dataclass(frozen=True)
class Balance:
    """The reassignment heuristic.

    Attributes
    ----------
    moderate, high : float
        Share of a node's rows in its small child below which its routing is imbalanced, and highly so. With ``high``
        above ``moderate`` every imbalance counts as high.
    swap : float
        Share of the rows whose class is swapped where the imbalance is high.
    weighs_wanted : bool
        Rows weigh in the regression (8) by the side on which they are wanted, so that a swapped row takes the weight
        of the small child, with the ridge of scikit-learn's default, 1 / rows of the node. Otherwise they weigh by
        the side on which they are, with a ridge of `CLASS_RIDGE`.
    """

    moderate: float = 0.3
    high: float = 0.1
    swap: float = 0.4
    weighs_wanted: bool = False

    def decayed(self, factor: float) -> Balance:
        """All three shares times a factor, as after each macro iteration."""
        return replace(self, moderate=self.moderate * factor, high=self.high * factor, swap=self.swap * factor)


Progress = Callable[[int, Tensor], None]
"""Called after each sweep with its number, from 1, and the best objectives (M,)."""


@dataclass(frozen=True)
class NodecSettings:
    """Published settings (section 5.1), with the moderate and high thresholds in the order of the text.

    Subproblems that fall apart into single nodes or leaves are solved by Newton's method (`softsurv.soft.newton`), the
    others by 20 rounds of L-BFGS.

    ``patience``: a tree stops after this many macro iterations without an improvement of ``tolerance`` (relative).
    """

    max_sweeps: int = 10
    balance: Balance = field(default_factory=Balance)
    decay: float = 0.8
    patience: int = 3
    tolerance: float = 1e-4
    branch: Inner = field(default_factory=NewtonSettings)
    leaf: Inner = field(default_factory=NewtonSettings)


@dataclass(frozen=True)
class Trained:
    """Best parameters of every tree, their objectives, and how training ended.

    Attributes
    ----------
    routing : Tensor (M, B, Q)
    leaves : Tensor (M, L, Q + K)
    objective : Tensor (M,)
    converged : Tensor (M,) bool
    trace : tuple of Tensor (M,)
        Best objectives after each sweep or look.
    """

    routing: Tensor
    leaves: Tensor
    objective: Tensor
    converged: Tensor
    trace: tuple[Tensor, ...] = ()


class _Best:
    """The best parameters so far of every tree."""

    def __init__(self, routing: Tensor, leaves: Tensor, objective: Tensor) -> None:
        self.routing, self.leaves, self.objective = routing.clone(), leaves.clone(), objective

    def keep(self, routing: Tensor, leaves: Tensor, value: Tensor, trees: Tensor, moving: Tensor) -> None:
        """Keep the given parameters of those of ``trees`` that are ``moving`` where their objective is lower."""
        before = self.objective[trees]
        won = moving & (value < before)
        self.routing[trees] = torch.where(won[:, None, None], routing, self.routing[trees])
        self.leaves[trees] = torch.where(won[:, None, None], leaves, self.leaves[trees])
        self.objective[trees] = torch.where(won, value, before)


def nodec(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    settings: NodecSettings,
    budget: StopSignal | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train every tree of the stack from its start; an exhausted budget returns the best trees so far.

    Raises
    ------
    InvalidParameterError
        If the subproblems are for BFGS, and the matrix of a tree's leaves has no room.
    """
    if isinstance(settings.leaf, BfgsSettings):
        room_for((leaves,))  # raises before any work; the largest step is that of all leaves
    trees = torch.arange(len(leaves), device=leaves.device)
    best = _Best(routing, leaves, objective.value(routing, leaves))
    part, waited, balance = objective, torch.zeros_like(trees), settings.balance
    converged = torch.full_like(waited, objective.depth == 0).bool()
    watch, trace = Watch(late=runs_ahead(best.objective)), list[Tensor]()
    for sweep in range(settings.max_sweeps):
        before, moving = best.objective[trees], waited < settings.patience
        for level in range(max(objective.depth, 1)):
            routing, leaves = _improve(part, routing, leaves, level, balance, settings, budget)
            best.keep(routing, leaves, part.value(routing, leaves), trees, moving)
            if budget is not None and budget.exhausted:
                break
        trace.append(best.objective.clone())
        if progress is not None:
            progress(sweep + 1, best.objective)
        if objective.depth == 0 or (budget is not None and budget.exhausted):
            break
        improved = before - best.objective[trees] > settings.tolerance * before.abs().clamp(min=1.0)
        waited = torch.where(moving & improved, 0, waited + 1)
        converged[trees] = waited >= settings.patience
        known = watch(waited < settings.patience)  # on a device perhaps of the sweep before: it is not waited for
        left = trees if known is None else torch.nonzero(known)[:, 0]
        if len(left) == 0:
            break
        if len(left) < len(trees):
            part = part.take(left)
            trees, routing, leaves, waited = (taken(value, left) for value in (trees, routing, leaves, waited))
            watch.narrow(left)
        balance = balance.decayed(settings.decay)
    return Trained(best.routing, best.leaves, best.objective, converged, tuple(trace))


def _improve(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    level: int,
    balance: Balance,
    settings: NodecSettings,
    budget: StopSignal | None,
) -> tuple[Tensor, Tensor]:
    """BN step, then LN step, of one level; the root's working set has no leaves unless it is the whole tree."""
    if objective.depth:
        routing = branch_step(objective, routing, leaves, level, balance, settings.branch, budget)
    if level > 0 or objective.depth <= 1:
        leaves = fit_leaves(objective, routing, leaves, settings.leaf, level, budget)
    return routing, leaves


def some(mask: Tensor) -> bool:
    """Whether the mask holds anywhere; always True on a GPU, because reading it would wait for the device."""
    return runs_ahead(mask) or bool(mask.any())


def branch_step(
    objective: Objective,
    routing: Tensor,
    leaves: Tensor,
    level: int,
    balance: Balance,
    settings: Inner,
    budget: StopSignal | None = None,
) -> Tensor:
    """BN step: branch nodes of all working sets of one level, with reassignment where routing is imbalanced."""
    leaf_loss = objective.leaf_losses(leaves)
    at_node, left, share = _routed(objective, routing, level)
    smaller = torch.minimum(share, 1 - share)  # (M, S)
    heavy_enough = balance.moderate * (objective.problem.weight > 0).sum((1, 2)) >= 1
    imbalanced = (smaller <= balance.moderate) & heavy_enough[:, None] & at_node.any(-1)
    if some(imbalanced):
        labels = left
        high = imbalanced & (smaller <= balance.high)
        if some(high):
            error = (objective.reach(routing, level) * leaf_loss).sum(1, keepdim=True)  # term (9)
            labels = _swap_worst(left, at_node, error, share, high, balance.swap)
        nodes = level_slice(level)
        rows = at_node & imbalanced[..., None]
        fitted = classify(objective, rows, left, labels, balance.weighs_wanted, budget)
        routing = routing.clone()
        routing[:, nodes] = torch.where(imbalanced[..., None], fitted, routing[:, nodes])
    free = _free_branches(~imbalanced, level, objective.depth)
    if not some(free):
        return routing
    return fit_branches(objective, routing, leaves, leaf_loss, free, settings, level, budget)


def classify(
    objective: Objective,
    rows: Tensor,  # (M, S, N) bool: rows that count at each node
    left: Tensor,  # (M, S, N) bool: side on which each row is now
    labels: Tensor,  # (M, S, N) bool: side on which it is wanted, True for left
    weighs_wanted: bool = False,
    budget: StopSignal | None = None,
) -> Tensor:  # (M, S, Q)
    """Weighted logistic regression (8) at each branch node. The rows that are now on a side weigh one half together.

    With ``weighs_wanted`` each row weighs by the side on which it is wanted, and the ridge is scikit-learn's default.
    """
    design = objective.problem.design
    gram = objective.problem.gram if design.shape[-1] <= design.shape[1] + 1 else None  # of all pairs of columns
    mass, wanted = _mass(rows, left, labels if weighs_wanted else left).to(design), labels.to(design)
    count = rows.sum(-1, keepdim=True).clamp(min=1).to(design)
    ridge = 1 / count if weighs_wanted else torch.full_like(count, CLASS_RIDGE)
    return fit_logistic(design, mass, wanted, ridge, budget, gram, groups=objective.problem.groups)


def _mass(rows: Tensor, left: Tensor, side: Tensor) -> Tensor:
    """Weight of each row by its side, (M, S, N): 1 / (2 L |I_s|) and 1 / (2 (1 - L) |I_s|)."""
    here_left, here_right = (rows & left).sum(-1, keepdim=True), (rows & ~left).sum(-1, keepdim=True)
    return torch.where(rows, 0.5 / torch.where(side, here_left, here_right).clamp(min=1), 0.0)


def _routed(objective: Objective, routing: Tensor, level: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which rows pass each node of the level on their HBP path, and which of all rows it would send left, (M, S, N);
    the share of the passing rows that goes left, (M, S)."""
    splits = objective.splits(routing)
    at = hbp_leaf(splits, level)[:, None]  # (M, 1, N) node of this level
    numbers = torch.arange(2**level, device=splits.device)[None, :, None]
    at_node = (at == numbers) & (objective.problem.weight > 0)
    left = splits[:, level_slice(level)] >= 0
    total = at_node.sum(-1)
    return at_node, left, (at_node & left).sum(-1) / total.clamp(min=1)


def _swap_worst(
    left: Tensor,  # (M, S, N) bool
    at_node: Tensor,  # (M, S, N) bool
    error: Tensor,  # (M, 1, N)
    share: Tensor,  # (M, S)
    high: Tensor,  # (M, S) bool
    fraction: float,
) -> Tensor:
    """Swap the class of the fraction of each node's rows in its big child that have the largest error term."""
    big = at_node & (left == (share >= 0.5)[..., None])
    count = torch.minimum((fraction * at_node.sum(-1)).ceil().long(), big.sum(-1) - 1).clamp(min=0)
    ranked = torch.where(big, error, -torch.inf).argsort(-1, descending=True)
    rank = torch.empty_like(ranked).scatter_(
        -1, ranked, torch.arange(ranked.shape[-1], device=ranked.device).expand_as(ranked)
    )
    return left ^ (big & (rank < count[..., None]) & high[..., None])


def _free_branches(balanced: Tensor, level: int, depth: int) -> Tensor:  # (M, S) -> (M, B, 1)
    """Branch nodes that the BN step moves: each balanced node with its descendants; the root alone if D > 1."""
    free = torch.zeros(balanced.shape[0], n_branches(depth), dtype=torch.bool, device=balanced.device)
    free[:, level_slice(level)] = balanced
    if level > 0:
        for below in range(level + 1, depth):
            free[:, level_slice(below)] = balanced.repeat_interleave(2 ** (below - level), 1)
    return free[..., None]
