"""One tree of rules from encoded data: chosen, collapsed where splits change nothing, and made a soft tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.budget import Budget
from softsurv.data.encoding import OutputColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.results import Status
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import Problem
from softsurv.soft.recipe import Candidate
from softsurv.sparse.choose import Grid, Trial, Tried, preferred, try_all
from softsurv.sparse.covariance import rule_covariance
from softsurv.sparse.finish import (
    GRID_TIMES,
    Collapsed,
    collapse,
    shallower,
    soft_tree,
    survival_in_leaves,
)
from softsurv.sparse.leaf_fit import LeafPenalties, fit_leaves, leaf_models
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import leaves_of, penalties_of
from softsurv.trees.linear_rule import Rules
from softsurv.trees.soft_tree import SoftTree

DIGITS = 12
"""Encoded numbers are read back to so many digits, which gives the numbers of the table."""


@dataclass(frozen=True)
class SparseFit:
    """A fitted tree of rules.

    Attributes
    ----------
    tree : SoftTree
        A stack of one, whose branch nodes are the rules.
    rules : tuple of LinearRule or None
        In heap order.
    chosen : Trial
    tried : Tried
    collapsed : tuple of Collapsed
        Splits that changed nothing and were taken out.
    objective : float
        Penalised mean loss of the training rows.
    reason : str
        Why this was chosen.
    covariance : ndarray (L, Q + K, Q + K), optional
        Of the parameters of each leaf that a row reaches, given the rules.
    stopped : Status, optional
        Why the choice ended early, where it did.
    """

    tree: SoftTree
    rules: Rules
    chosen: Trial
    tried: Tried
    collapsed: tuple[Collapsed, ...]
    objective: float
    reason: str
    covariance: FloatArray | None = None
    stopped: Status | None = None

    @property
    def candidate(self) -> Candidate:
        """The setting, with the depth that is left."""
        return replace(self.chosen.candidate, depth=self.tree.depth)

    def table(self) -> list[dict[str, Any]]:
        """What was tried, best first."""
        return self.tried.table(self.chosen)


EXACT_POWER = 22
"""Ten to this power is the largest that a double holds exactly."""


def split_data(x: FloatArray, columns: Sequence[OutputColumn]) -> SplitData:
    """Encoded features (N, P) in the data's units, and which of them make a rule alone."""
    values = np.empty((len(columns), len(x)))
    levels: dict[str, list[int]] = {}
    single = []
    for k, column in enumerate(columns):
        values[k] = _rounded(x[:, k] * column.scale + column.offset) if column.kind == "number" else x[:, k]
        if column.kind == "level":
            levels.setdefault(column.source, []).append(k)
        else:
            single.append(k)
    single += [of_source[0] for of_source in levels.values() if len(of_source) == 1]
    categories = tuple(tuple(of_source) for of_source in levels.values() if len(of_source) > 1)
    return SplitData(values, tuple(sorted(single)), categories)


def _rounded(values: FloatArray) -> FloatArray:
    """Values (N,) read back from so many digits, as ``float(f"{value:.12g}")`` does."""
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(size > 0, DIGITS - 1 - np.floor(np.log10(size)), 0.0)
    plain = np.abs(power) <= EXACT_POWER  # a whole number and an exact power of ten: the quotient is the nearest double
    up, down = 10.0 ** np.clip(power, 0, EXACT_POWER), 10.0 ** np.clip(-power, 0, EXACT_POWER)
    out = np.rint(values * up / down) / up * down
    out[~plain] = [float(f"{value:.{DIGITS}g}") for value in values[~plain]]
    return out


def fit_rules(
    data: SurvivalData,
    columns: Sequence[OutputColumn],
    families: Sequence[LeafFamily],
    grid: Grid,
    *,
    prefer: str = "tree",
    machine: Machine,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> SparseFit:
    """Choose and train a tree of rules.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    columns : sequence of OutputColumn (P,)
        Where each feature comes from.
    families : sequence of LeafFamily
    grid : Grid
    prefer : {"tree", "simplest"}
    machine : Machine
        Once its budget is exhausted, no further candidates are tried.
    seed : int
        Of the folds.
    say : callable, optional
        Called with what is tried next.
    """
    split = split_data(data.x.double().cpu().numpy(), columns)
    choosing = machine.ending_sooner()
    tried = try_all(data, split, families, grid, seed, choosing, say)
    stopped = None if choosing.budget is None else choosing.budget.status
    times, left = _times(data), list(tried.trials)
    while True:
        chosen, reason = preferred(left, prefer)
        problem = tried.problems[chosen.candidate.family]
        rules, model, gone = _collapsed(chosen, problem, split, times, data.n, machine.budget)
        if rules or not chosen.rules or len(left) == 1 or not any(t.rules for t in left if t is not chosen):
            break
        left.remove(chosen)  # its leaves are one model: that is no tree
    leaf = leaves_of([rules], split) if rules else torch.zeros(1, data.n, dtype=torch.int64)
    penalties = _penalties(chosen.candidate, data.n)
    end = fit_leaves(problem, leaf, len(rules) + 1, penalties, model, budget=machine.budget)
    tree = soft_tree(problem, rules, end.point[0], split, columns)
    penalties = _penalties(chosen.candidate, data.n)
    covariance = _covariance(problem, leaf[0], end.point[0][0], penalties, data, tree.used_leaves)
    return SparseFit(tree, rules, chosen, tried, tuple(gone), float(end.loss[0]), reason, covariance, stopped)


def _covariance(
    problem: Problem, leaf: Tensor, model: Tensor, penalties: LeafPenalties, data: SurvivalData, used: IntArray
) -> FloatArray | None:
    """Covariance of the leaves that the rules lead to; a weight counts so many rows."""
    place = torch.searchsorted(torch.as_tensor(used), leaf)
    total = float(data.n if data.weight is None else data.weight.sum())
    return rule_covariance(problem, place, model[np.append(0, 1 + used)], penalties, total)


def _collapsed(
    chosen: Trial, problem: Problem, split: SplitData, times: FloatArray, n: int, budget: Budget | None
) -> tuple[Rules, Tensor, list[Collapsed]]:
    """The chosen tree without splits that change nothing, its leaves fitted again, and what was taken out."""
    rules, model, gone = chosen.rules, chosen.model, []
    log_times = torch.as_tensor(np.log(times)).to(problem.time_scale)
    features = problem.family.time_features(log_times[None], problem.time_scale)
    while rules:
        new, out = collapse(rules, split, survival_in_leaves(problem, leaf_models(model), features).cpu())
        if not out:
            break
        gone += out
        rules = new
        if all(rule is None for rule in rules):
            break
        leaf, penalties = leaves_of([rules], split), _penalties(chosen.candidate, n)
        (model,) = fit_leaves(problem, leaf, len(rules) + 1, penalties, model, budget=budget).point
    kept, deviations = shallower(rules, model[0, 1:].cpu().numpy())
    return kept, torch.cat([model[:, :1], torch.as_tensor(deviations).to(model)[None]], 1), gone


def _penalties(candidate: Candidate, n: int) -> LeafPenalties:
    return penalties_of(np.array([float(n)]), candidate.ridge, candidate.shrinkage, candidate.slope_shrinkage)


def _times(data: SurvivalData) -> FloatArray:
    """Times at which two sides of a split are compared: quantiles of the observed events' times."""
    time = data.time.double().cpu().numpy()
    event = data.failed & (time > 0)
    known = time[event] if event.any() else time[time > 0]
    return np.unique(np.quantile(known, np.linspace(0, 1, GRID_TIMES)))
